{{/* Pieces of CEL. `object` is a pod unless said otherwise. */}}

{{/* Is the key of a resource a GPU's? */}}
{{- define "benchpool.cel.prefixes" -}}
[{{ range $i, $p := .Values.policies.gpuResourcePrefixes }}{{ if $i }}, {{ end }}'{{ $p }}'{{ end }}]
{{- end }}

{{/* Does a pod's spec ask for devices? An argument: (list . "object.spec") */}}
{{- define "benchpool.cel.asksForDevices" -}}
{{- $root := index . 0 -}}{{- $spec := index . 1 -}}
{{ $spec }}.?resourceClaims.orValue([]).size() > 0 ||
({{ $spec }}.containers + {{ $spec }}.?initContainers.orValue([])).exists(c,
  c.?resources.?claims.orValue([]).size() > 0 ||
  [c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})].exists(r,
    r.exists(k, {{ include "benchpool.cel.prefixes" $root }}.exists(p, k.startsWith(p)) && string(r[k]) != '0')))
{{- end }}

{{- define "benchpool.cel.isScheduler" -}}
request.userInfo.username == '{{ include "benchpool.schedulerUser" . }}'
{{- end }}

{{- define "benchpool.cel.isHub" -}}
request.userInfo.username == '{{ include "benchpool.hubUser" . }}'
{{- end }}

{{- define "benchpool.cel.isJobController" -}}
request.userInfo.username in [{{ range $i, $u := .Values.policies.jobControllers }}{{ if $i }}, {{ end }}'{{ $u }}'{{ end }}]
{{- end }}

{{/* The cluster's own controllers: they clear away what belongs to what is gone. */}}
{{- define "benchpool.cel.isCluster" -}}
request.userInfo.username == 'system:kube-controller-manager' || 'system:serviceaccounts:kube-system' in request.userInfo.groups
{{- end }}

{{/* Are the keys of ours in a map of labels or annotations the same before and after? (list "labels") */}}
{{- define "benchpool.cel.sameKeys" -}}
{{- $map := . -}}
object.metadata.?{{ $map }}.orValue({}).all(k, !k.startsWith('benchpool.io/') ||
  (request.operation == 'UPDATE' && k in oldObject.metadata.?{{ $map }}.orValue({}) && oldObject.metadata.{{ $map }}[k] == object.metadata.{{ $map }}[k])) &&
(request.operation != 'UPDATE' ||
  oldObject.metadata.?{{ $map }}.orValue({}).all(k, !k.startsWith('benchpool.io/') || k in object.metadata.?{{ $map }}.orValue({})))
{{- end }}

{{/* The head of a policy and its binding: (dict "root" . "name" "gpus") */}}
{{- define "benchpool.policy.binding" -}}
{{- $name := printf "%s-%s" (include "benchpool.fullname" .root) .name -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels: {{- include "benchpool.labels" .root | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{- end }}

{{- define "benchpool.policy.head" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ printf "%s-%s" (include "benchpool.fullname" .root) .name }}
  labels: {{- include "benchpool.labels" .root | nindent 4 }}
{{- end }}

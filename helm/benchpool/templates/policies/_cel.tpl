{{/* Expressions of CEL. `object` is a pod, unless noted otherwise. */}}

{{/* Prefixes of the keys of resources that are GPUs or devices. */}}
{{- define "benchpool.cel.prefixes" -}}
['deviceclass.resource.kubernetes.io/'{{ range .Values.policies.gpuResourcePrefixes }}, '{{ . }}'{{ end }}]
{{- end }}

{{/* Whether a pod's spec requests devices: (list . "object.spec") */}}
{{- define "benchpool.cel.asksForDevices" -}}
{{- $root := index . 0 -}}{{- $spec := index . 1 -}}
{{ $spec }}.?resourceClaims.orValue([]).size() > 0 ||
({{ $spec }}.containers + {{ $spec }}.?initContainers.orValue([])).exists(c,
  c.?resources.?claims.orValue([]).size() > 0 ||
  [c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})].exists(r,
    r.exists(k, {{ include "benchpool.cel.prefixes" $root }}.exists(p, k.startsWith(p)) && string(r[k]) != '0')))
{{- end }}

{{/* Whether a pod requests GPUs by a resource. */}}
{{- define "benchpool.cel.asksForGpus" -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c,
  [c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})].exists(r,
    r.exists(k, {{ include "benchpool.cel.prefixes" . }}.exists(p, k.startsWith(p)) && string(r[k]) != '0')))
{{- end }}

{{/* API version of MutatingAdmissionPolicy; empty if the cluster has none or policies.mutating is none. */}}
{{- define "benchpool.mutatingVersion" -}}
{{- $asked := .Values.policies.mutating -}}
{{- if eq $asked "auto" -}}
{{- range list "v1" "v1beta1" -}}
{{- if $.Capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .) -}}
{{- if not (hasPrefix "v" $asked) }}{{ $asked = . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasPrefix "v" $asked }}{{ $asked }}{{ end -}}
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

{{/* The cluster's own controllers, which delete the dependents of deleted objects. */}}
{{- define "benchpool.cel.isCluster" -}}
request.userInfo.username == 'system:kube-controller-manager' || 'system:serviceaccounts:kube-system' in request.userInfo.groups
{{- end }}

{{/* Whether a request leaves the benchpool.io/ keys of labels or annotations unchanged: "labels" */}}
{{- define "benchpool.cel.sameKeys" -}}
{{- $map := . -}}
object.metadata.?{{ $map }}.orValue({}).all(k, !k.startsWith('benchpool.io/') ||
  (request.operation == 'UPDATE' && k in oldObject.metadata.?{{ $map }}.orValue({}) && oldObject.metadata.{{ $map }}[k] == object.metadata.{{ $map }}[k])) &&
(request.operation != 'UPDATE' ||
  oldObject.metadata.?{{ $map }}.orValue({}).all(k, !k.startsWith('benchpool.io/') || k in object.metadata.?{{ $map }}.orValue({})))
{{- end }}

{{/* Binding of a policy, and below it the head: (dict "root" . "name" "gpus") */}}
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

{{/* Components of the control plane: controllers, kube-scheduler, nodes. Their names are reserved. */}}
{{- define "benchpool.cel.isControlPlane" -}}
(request.userInfo.username.startsWith('system:') && !request.userInfo.username.startsWith('system:serviceaccount:') &&
 request.userInfo.username != 'system:anonymous') ||
'system:serviceaccounts:kube-system' in request.userInfo.groups
{{- end }}

{{/* Whether the caller administers the cluster: may delete NodePools, or is listed in policies.trusted. */}}
{{- define "benchpool.cel.isTrusted" -}}
request.userInfo.username in {{ .Values.policies.trusted | toJson }} ||
authorizer.group('benchpool.io').resource('nodepools').check('delete').allowed()
{{- end }}

{{/* Whether the Job controller creates a worker for a Job of the scheduler. `object` is a pod. */}}
{{- define "benchpool.cel.isWorkerOfOurs" -}}
({{ include "benchpool.cel.isJobController" . }}) &&
object.metadata.?labels[?'benchpool.io/role'].orValue('') == 'worker' &&
object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'Job' && o.?controller.orValue(false) && o.name.startsWith('bp-'))
{{- end }}

{{/* Whether an object belongs to benchpool, by its labels and annotations: (list . "oldObject") */}}
{{- define "benchpool.cel.bearsOurKeys" -}}
{{- $root := index . 0 -}}{{- $it := index . 1 -}}
({{ $it }}.metadata.?labels.orValue({}).exists(k, k.startsWith('benchpool.io/') || k.startsWith('hub.jupyter.org/')) ||
 {{ $it }}.metadata.?annotations.orValue({}).exists(k, k.startsWith('benchpool.io/') || k == 'hub.jupyter.org/username') ||
 ({{ $it }}.metadata.?labels[?'app.kubernetes.io/name'].orValue('') == 'benchpool' &&
  {{ $it }}.metadata.?labels[?'app.kubernetes.io/instance'].orValue('') == '{{ $root.Release.Name }}'))
{{- end }}

{{/* Whether a name is reserved for benchpool, for request.resource: (list . "request.name") */}}
{{- define "benchpool.cel.isOurName" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
({{ $name }}.startsWith('bp-') ||
 (request.resource.resource == 'pods' && {{ $name }}.startsWith('{{ $root.Values.policies.notebookNames }}')) ||
 (request.resource.resource == 'persistentvolumeclaims' && {{ include "benchpool.cel.homes" $root }}.exists(p, {{ $name }}.startsWith(p))))
{{- end }}

{{- define "benchpool.cel.homes" -}}
[{{ range $i, $p := .Values.policies.homeNames }}{{ if $i }}, {{ end }}'{{ $p }}'{{ end }}]
{{- end }}

{{/* Whether no pod of benchpool has this label: (list "k" "v"). A selector with it selects none of them. */}}
{{- define "benchpool.cel.isForeignLabel" -}}
{{- $k := index . 0 -}}{{- $v := index . 1 -}}
!({{ $k }}.startsWith('benchpool.io/') || {{ $k }}.startsWith('hub.jupyter.org/') ||
  ({{ $k }} in ['batch.kubernetes.io/job-name', 'job-name'] && {{ $v }}.startsWith('bp-')) ||
  {{ $k }} in ['batch.kubernetes.io/controller-uid', 'controller-uid', 'batch.kubernetes.io/job-completion-index'] ||
  ({{ $k }} in ['app', 'heritage', 'app.kubernetes.io/name'] && {{ $v }} == 'jupyterhub') ||
  ({{ $k }} in ['component', 'app.kubernetes.io/component'] && {{ $v }} == 'singleuser-server') ||
  {{ $k }} in ['release', 'chart', 'helm.sh/chart', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by'])
{{- end }}
{{- define "benchpool.cel.selectsOthers" -}}
{{- $it := . -}}
({{ $it }}.?matchLabels.orValue({}).exists(k, {{ include "benchpool.cel.isForeignLabel" (list "k" (printf "%s.matchLabels[k]" $it)) }}) ||
 {{ $it }}.?matchExpressions.orValue([]).exists(e, e.operator == 'In' && e.?values.orValue([]).all(v, {{ include "benchpool.cel.isForeignLabel" (list "e.key" "v") }})) ||
 {{ $it }}.?matchExpressions.orValue([]).exists(e, e.operator == 'DoesNotExist' && e.key == 'benchpool.io/role') &&
 {{ $it }}.?matchExpressions.orValue([]).exists(e, e.operator == 'DoesNotExist' && e.key == 'hub.jupyter.org/username'))
{{- end }}

{{/* Pieces of CEL. `object` is a pod unless said otherwise. */}}

{{/* Is the key of a resource a GPU's? */}}
{{- define "benchpool.cel.prefixes" -}}
['deviceclass.resource.kubernetes.io/'{{ range .Values.policies.gpuResourcePrefixes }}, '{{ . }}'{{ end }}]
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

{{/* Does a pod ask for GPUs by resource? */}}
{{- define "benchpool.cel.asksForGpus" -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c,
  [c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})].exists(r,
    r.exists(k, {{ include "benchpool.cel.prefixes" . }}.exists(p, k.startsWith(p)) && string(r[k]) != '0')))
{{- end }}

{{/* Which version of MutatingAdmissionPolicy is used; empty where the cluster has none. */}}
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

{{/* The control plane's own parts: controllers, kube-scheduler, nodes. Nobody can be given such a name. */}}
{{- define "benchpool.cel.isControlPlane" -}}
(request.userInfo.username.startsWith('system:') && !request.userInfo.username.startsWith('system:serviceaccount:') &&
 request.userInfo.username != 'system:anonymous') ||
'system:serviceaccounts:kube-system' in request.userInfo.groups
{{- end }}

{{/* Who runs the cluster: may delete NodePools, or is named in policies.trusted. */}}
{{- define "benchpool.cel.isTrusted" -}}
request.userInfo.username in {{ .Values.policies.trusted | toJson }} ||
authorizer.group('benchpool.io').resource('nodepools').check('delete').allowed()
{{- end }}

{{/* Does the Job controller make a worker for a Job of the scheduler's? `object` is a pod. */}}
{{- define "benchpool.cel.isWorkerOfOurs" -}}
({{ include "benchpool.cel.isJobController" . }}) &&
object.metadata.?labels[?'benchpool.io/role'].orValue('') == 'worker' &&
object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'Job' && o.?controller.orValue(false) && o.name.startsWith('bp-'))
{{- end }}

{{/* Is something of ours, by its labels and annotations? An argument: (list . "oldObject") */}}
{{- define "benchpool.cel.bearsOurKeys" -}}
{{- $root := index . 0 -}}{{- $it := index . 1 -}}
({{ $it }}.metadata.?labels.orValue({}).exists(k, k.startsWith('benchpool.io/') || k.startsWith('hub.jupyter.org/')) ||
 {{ $it }}.metadata.?annotations.orValue({}).exists(k, k.startsWith('benchpool.io/') || k == 'hub.jupyter.org/username') ||
 ({{ $it }}.metadata.?labels[?'app.kubernetes.io/name'].orValue('') == 'benchpool' &&
  {{ $it }}.metadata.?labels[?'app.kubernetes.io/instance'].orValue('') == '{{ $root.Release.Name }}'))
{{- end }}

{{/* Is a name one of ours, in the work namespace? (list . "request.name"), for request.resource */}}
{{- define "benchpool.cel.isOurName" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
({{ $name }}.startsWith('bp-') ||
 (request.resource.resource == 'pods' && {{ $name }}.startsWith('{{ $root.Values.policies.notebookNames }}')) ||
 (request.resource.resource == 'persistentvolumeclaims' && {{ include "benchpool.cel.homes" $root }}.exists(p, {{ $name }}.startsWith(p))))
{{- end }}

{{- define "benchpool.cel.homes" -}}
[{{ range $i, $p := .Values.policies.homeNames }}{{ if $i }}, {{ end }}'{{ $p }}'{{ end }}]
{{- end }}

{{/* Does no pod of ours ever bear this label? (list "k" "v"). A selector with one such label selects none of ours. */}}
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

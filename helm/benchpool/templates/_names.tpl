{{/* Names, labels and accounts. The keys of labels are those of contract/kubernetes.py. */}}

{{- define "benchpool.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains "benchpool" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-benchpool" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "benchpool.workspace" -}}
{{ .Values.workspace.name | default (printf "%s-work" .Release.Namespace) }}
{{- end }}

{{- define "benchpool.priorityClass" -}}
{{ .Values.priorityClass.name | default (ternary (include "benchpool.fullname" .) "" .Values.priorityClass.create) }}
{{- end }}

{{- define "benchpool.labels" -}}
app.kubernetes.io/name: benchpool
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* What selects the pods of a part: (list . "hub") */}}
{{- define "benchpool.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: benchpool
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The same labels as one text: NAME=VALUE, separated by commas. */}}
{{- define "benchpool.selectorWords" -}}
{{- $words := list -}}
{{- range $name, $value := include "benchpool.selector" . | fromYaml -}}
{{- $words = append $words (printf "%s=%s" $name $value) -}}
{{- end -}}
{{- join "," $words -}}
{{- end }}

{{/* An image: (list . "hub") */}}
{{- define "benchpool.image" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- $given := index $root.Values.images $part -}}
{{- $name := $given | default (printf "%s%s:%s" $root.Values.images.prefix $part ($root.Values.images.tag | default $root.Chart.AppVersion)) -}}
{{- include "benchpool.mirrored" (list $root $name) -}}
{{- end }}

{{/*
An image as the mirror has it, which takes the place of the image's registry: (list . "quay.io/a/b:1").
What stands before the first slash is a registry where it has a point or a colon, or is localhost.
helm/manifests.py says the same.
*/}}
{{- define "benchpool.mirrored" -}}
{{- $mirror := (index . 0).Values.images.mirror -}}{{- $name := index . 1 -}}
{{- if $mirror -}}
{{ printf "%s/%s" (trimSuffix "/" $mirror) (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $name "") }}
{{- else -}}
{{ $name }}
{{- end -}}
{{- end }}

{{/* Profiles of the start form, each image as the mirror has it; as JSON, below "value". */}}
{{- define "benchpool.mirroredProfiles" -}}
{{- $root := index . 0 -}}{{- $value := index . 1 -}}
{{- if kindIs "map" $value -}}
{{- $found := dict -}}
{{- range $key, $one := $value -}}
{{- if and (eq $key "image") (kindIs "string" $one) -}}
{{- $_ := set $found $key (include "benchpool.mirrored" (list $root $one)) -}}
{{- else -}}
{{- $_ := set $found $key (include "benchpool.mirroredProfiles" (list $root $one) | fromJson).value -}}
{{- end -}}
{{- end -}}
{{ dict "value" $found | toJson }}
{{- else if kindIs "slice" $value -}}
{{- $found := list -}}
{{- range $value -}}
{{- $found = append $found (include "benchpool.mirroredProfiles" (list $root .) | fromJson).value -}}
{{- end -}}
{{ dict "value" $found | toJson }}
{{- else -}}
{{ dict "value" $value | toJson }}
{{- end -}}
{{- end }}

{{/* The images that a value holds, separated by line breaks. */}}
{{- define "benchpool.imagesIn" -}}
{{- if kindIs "map" . -}}
{{- range $key, $one := . -}}
{{- if and (eq $key "image") (kindIs "string" $one) }}{{ $one }}{{ "\n" }}{{ else }}{{ include "benchpool.imagesIn" $one }}{{ end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- range . }}{{ include "benchpool.imagesIn" . }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "benchpool.schedulerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "benchpool.fullname" . }}-scheduler
{{- end }}

{{/* Whose tokens agents of nodes show; empty where there are none. */}}
{{- define "benchpool.nodeAgentUser" -}}
{{- if .Values.telemetry.agent.enabled -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "benchpool.fullname" . }}-node-agent
{{- end -}}
{{- end }}

{{- define "benchpool.hubNamespace" -}}
{{ if .Values.hub.enabled }}{{ .Release.Namespace }}{{ else }}{{ .Values.hub.existing.namespace | default .Release.Namespace }}{{ end }}
{{- end }}

{{- define "benchpool.hubAccount" -}}
{{ if .Values.hub.enabled }}{{ include "benchpool.fullname" . }}-hub{{ else }}{{ .Values.hub.existing.serviceAccount }}{{ end }}
{{- end }}

{{- define "benchpool.hubUser" -}}
system:serviceaccount:{{ include "benchpool.hubNamespace" . }}:{{ include "benchpool.hubAccount" . }}
{{- end }}

{{/* Where hub, proxy and scheduler are for others. */}}
{{- define "benchpool.hubApi" -}}
{{- if .Values.hub.enabled -}}
http://{{ include "benchpool.fullname" . }}-hub.{{ .Release.Namespace }}.svc:8081{{ include "benchpool.baseUrl" . }}hub/api
{{- else -}}
{{ required "hub.existing.apiUrl is needed when hub.enabled is false, for example http://hub.jupyter.svc:8081/hub/api" .Values.hub.existing.apiUrl }}
{{- end -}}
{{- end }}

{{- define "benchpool.baseUrl" -}}
{{ printf "/%s/" (trimAll "/" .Values.hub.baseUrl) | replace "//" "/" }}
{{- end }}

{{- define "benchpool.servicePrefix" -}}
{{ include "benchpool.baseUrl" . }}services/benchpool/
{{- end }}

{{- define "benchpool.schedulerUrl" -}}
http://{{ include "benchpool.fullname" . }}-scheduler.{{ .Release.Namespace }}.svc:8080
{{- end }}

{{/* Where the Hub's own proxy comes from: names are looked up, for the address of its pod changes. */}}
{{- define "benchpool.hubProxies" -}}
{{- if .Values.hub.enabled -}}
{{ include "benchpool.fullname" . }}-proxy-pods.{{ .Release.Namespace }}.svc
{{- else -}}
{{ join "," .Values.hub.existing.proxies }}
{{- end -}}
{{- end }}

{{- define "benchpool.secretName" -}}
{{ .Values.secrets.existing | default (printf "%s-secrets" (include "benchpool.fullname" .)) }}
{{- end }}

{{/* What every container of ours has: the restricted pod security standard, and no writing but in volumes. */}}
{{- define "benchpool.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "benchpool.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Where the pods of a part may run: (list . .Values.hub) */}}
{{- define "benchpool.placement" -}}
{{- $part := index . 1 -}}
{{- with $part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
"true" where all replicas of the scheduler belong on one node: they share a volume that one node may
mount. Then none of them is protected from disruption: one that has come to another node waits there
for the volume until the last has left the first, so that a drain must be allowed to move them all.
*/}}
{{- define "benchpool.oneNode" -}}
{{- $scheduler := .Values.scheduler -}}
{{- if gt (int $scheduler.replicas) 1 -}}
{{- if eq $scheduler.storage.accessMode "ReadWriteOncePod" -}}
{{- fail (printf "scheduler.storage.accessMode is ReadWriteOncePod, which lets one pod mount the volume, and scheduler.replicas is %d: set replicas to 1, or accessMode to ReadWriteOnce (all replicas on one node) or ReadWriteMany (on several)." (int $scheduler.replicas)) -}}
{{- end -}}
{{- if eq $scheduler.storage.accessMode "ReadWriteOnce" -}}true{{- end -}}
{{- end -}}
{{- end }}

{{/*
The scheduler's affinity: the site's own, and with it that replicas belong together or apart. It is a
wish in both cases. As a must, all replicas of a drained node would wait for five minutes: Kubernetes
looks for a place while the old ones are still ending there, and not again when they have gone.
*/}}
{{- define "benchpool.schedulerAffinity" -}}
{{- $affinity := deepCopy .Values.scheduler.affinity -}}
{{- $preferred := "preferredDuringSchedulingIgnoredDuringExecution" -}}
{{- $labels := include "benchpool.selector" (list . "scheduler") | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $wish := dict "weight" 100 "podAffinityTerm" $term -}}
{{- $kind := ternary "podAffinity" "podAntiAffinity" (eq (include "benchpool.oneNode" .) "true") -}}
{{- $pods := get $affinity $kind | default dict -}}
{{- $_ := set $pods $preferred (append (get $pods $preferred | default list) $wish) -}}
{{- $_ := set $affinity $kind $pods -}}
{{ toYaml $affinity }}
{{- end }}

{{- define "benchpool.schedulerClaim" -}}
{{ .Values.scheduler.storage.claim | default (printf "%s-scheduler" (include "benchpool.fullname" .)) }}
{{- end }}

{{/* A CronJob of copies: (list . "copy" "hub"). Names of CronJobs have at most 52 signs. */}}
{{- define "benchpool.copyName" -}}
{{ printf "%s-%s-%s" (include "benchpool.fullname" (index . 0) | trunc 39 | trimSuffix "-") (index . 1) (index . 2) }}
{{- end }}

{{/*
"true" where the volume of a part is copied: (list . "hub"). Not where there is none (a Hub's
database elsewhere, another release's Hub), nor where one pod alone may mount it.
*/}}
{{- define "benchpool.copied" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.backup.enabled -}}
{{- if eq (index . 1) "hub" -}}
{{- and $root.Values.hub.enabled (not $root.Values.hub.database.url) -}}
{{- else -}}
{{- ne $root.Values.scheduler.storage.accessMode "ReadWriteOncePod" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The CronJobs that copy, separated by commas. */}}
{{- define "benchpool.copyNames" -}}
{{- $found := list -}}
{{- range $part := list "hub" "pool" -}}
{{- if eq (include "benchpool.copied" (list $ $part)) "true" -}}
{{- $found = append $found (include "benchpool.copyName" (list $ "copy" $part)) -}}
{{- end -}}
{{- end -}}
{{ join "," $found }}
{{- end }}

{{- define "benchpool.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What every cookie says: no other site's page sends it along, and behind HTTPS it never travels in the
clear. The proxy ends TLS or the ingress does, so it is the public address that tells.
*/}}
{{- define "benchpool.cookieOptions" -}}
{{- $options := dict "samesite" "Lax" -}}
{{- if hasPrefix "https://" .Values.hub.publicUrl }}{{ $_ := set $options "secure" true }}{{ end -}}
{{ toJson $options }}
{{- end }}

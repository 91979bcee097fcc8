{{/* Names, labels and accounts. contract/kubernetes.py defines the keys of labels. */}}

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

{{/* Labels that select the pods of a component: (list . "hub") */}}
{{- define "benchpool.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: benchpool
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The same labels as one string: NAME=VALUE, separated by commas. */}}
{{- define "benchpool.selectorWords" -}}
{{- $words := list -}}
{{- range $name, $value := include "benchpool.selector" . | fromYaml -}}
{{- $words = append $words (printf "%s=%s" $name $value) -}}
{{- end -}}
{{- join "," $words -}}
{{- end }}

{{/* Full name of the image of a component: (list . "hub") */}}
{{- define "benchpool.image" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- $given := index $root.Values.images $part -}}
{{- $name := $given | default (printf "%s%s:%s" $root.Values.images.prefix $part ($root.Values.images.tag | default $root.Chart.AppVersion)) -}}
{{- include "benchpool.mirrored" (list $root $name) -}}
{{- end }}

{{/*
Name of an image in the mirror, which replaces the registry: (list . "quay.io/a/b:1"). The part before
the first slash is a registry if it contains a dot or a colon, or is localhost. helm/manifests.py has
the same rule.
*/}}
{{- define "benchpool.mirrored" -}}
{{- $mirror := (index . 0).Values.images.mirror -}}{{- $name := index . 1 -}}
{{- if $mirror -}}
{{ printf "%s/%s" (trimSuffix "/" $mirror) (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $name "") }}
{{- else -}}
{{ $name }}
{{- end -}}
{{- end }}

{{/* Profiles of the start form, with the images of the mirror: JSON with the key "value". */}}
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

{{/* Image names in a value, each on a line. */}}
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

{{/* Account whose tokens the node agents present; empty without node agents. */}}
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

{{/* Addresses of the hub and the scheduler in the cluster. */}}
{{- define "benchpool.hubApi" -}}
{{- if .Values.hub.enabled -}}
http://{{ include "benchpool.fullname" . }}-hub.{{ .Release.Namespace }}.svc:8081{{ include "benchpool.baseUrl" . }}hub/api
{{- else -}}
{{ required "hub.existing.apiUrl is required when hub.enabled is false, for example http://hub.jupyter.svc:8081/hub/api" .Values.hub.existing.apiUrl }}
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

{{/* Origin of requests of the hub's proxy. As a DNS name, because the address of its pod changes. */}}
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

{{/* Security of our containers: the restricted pod security standard, and write access to volumes only. */}}
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

{{/* Placement of the pods of a component: (list . .Values.hub) */}}
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
"true" if all replicas of the scheduler must run on one node, because only one node may mount their
volume. Then they have no disruption budget. A replica on another node waits for the volume until the
last one has left the first node, so a drain must be able to move all of them.
*/}}
{{- define "benchpool.oneNode" -}}
{{- $scheduler := .Values.scheduler -}}
{{- if gt (int $scheduler.replicas) 1 -}}
{{- if eq $scheduler.storage.accessMode "ReadWriteOncePod" -}}
{{- fail (printf "With scheduler.storage.accessMode ReadWriteOncePod only one pod may mount the volume, but scheduler.replicas is %d. Set replicas to 1, or accessMode to ReadWriteOnce (all replicas on one node) or ReadWriteMany (on several)." (int $scheduler.replicas)) -}}
{{- end -}}
{{- if eq $scheduler.storage.accessMode "ReadWriteOnce" -}}true{{- end -}}
{{- end -}}
{{- end }}

{{/*
The scheduler's affinity: the site's own, and a preference for one node or for different nodes. If it
were required, all replicas of a drained node would wait five minutes: Kubernetes looks for a node
while the old replicas still stop on the first one, and does not try again when they have stopped.
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

{{/* Name of a CronJob of copies: (list . "copy" "hub"). CronJob names have at most 52 characters. */}}
{{- define "benchpool.copyName" -}}
{{ printf "%s-%s-%s" (include "benchpool.fullname" (index . 0) | trunc 39 | trimSuffix "-") (index . 1) (index . 2) }}
{{- end }}

{{/*
"true" if the volume of a component is copied: (list . "hub"). It is not copied if it does not exist
(an external database, or a hub of another release), or if only one pod may mount it.
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

{{/* Names of the CronJobs that copy volumes, separated by commas. */}}
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
Options of all cookies: pages of other sites do not send them, and with HTTPS they are never sent
unencrypted. TLS ends at the proxy or the ingress, so the public address determines the scheme.
*/}}
{{- define "benchpool.cookieOptions" -}}
{{- $options := dict "samesite" "Lax" -}}
{{- if hasPrefix "https://" .Values.hub.publicUrl }}{{ $_ := set $options "secure" true }}{{ end -}}
{{ toJson $options }}
{{- end }}

{{/* Rules of network policies. */}}

{{- define "benchpool.network.dns" -}}
{{- if or .Values.networkPolicy.dns.podSelectors .Values.networkPolicy.dns.ipBlocks -}}
- to:
    {{- with .Values.networkPolicy.dns.podSelectors }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- range .Values.networkPolicy.dns.ipBlocks }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end }}
{{- end }}

{{- define "benchpool.network.releaseNamespace" -}}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
{{- end }}

{{- define "benchpool.network.hubPods" -}}
{{- if .Values.hub.enabled -}}
- {{ include "benchpool.network.releaseNamespace" . }}
  podSelector:
    matchLabels: {{- include "benchpool.selector" (list . "hub") | nindent 6 }}
{{- else -}}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ include "benchpool.hubNamespace" . }}}}
  podSelector: {matchLabels: {app: jupyterhub, component: hub}}
{{- end }}
{{- end }}

{{- define "benchpool.network.proxyPods" -}}
{{- if .Values.hub.enabled -}}
- {{ include "benchpool.network.releaseNamespace" . }}
  podSelector:
    matchLabels: {{- include "benchpool.selector" (list . "proxy") | nindent 6 }}
{{- else -}}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ include "benchpool.hubNamespace" . }}}}
  podSelector: {matchLabels: {app: jupyterhub, component: proxy}}
{{- end }}
{{- end }}

{{- define "benchpool.network.toScheduler" -}}
- to:
    - {{ include "benchpool.network.releaseNamespace" . }}
      podSelector:
        matchLabels: {{- include "benchpool.selector" (list . "scheduler") | nindent 10 }}
  ports: [{port: 8080, protocol: TCP}]
{{- end }}

{{/* The internet: all addresses except networkPolicy.deniedRanges, and the extra rules of the site. */}}
{{- define "benchpool.network.internet" -}}
{{- if .Values.networkPolicy.internet -}}
{{- $four := list }}{{- $six := list }}
{{- range .Values.networkPolicy.deniedRanges }}
{{- if contains ":" . }}{{ $six = append $six . }}{{ else }}{{ $four = append $four . }}{{ end }}
{{- end -}}
- to:
    - ipBlock: {cidr: 0.0.0.0/0, except: {{ $four | toJson }}}
    - ipBlock: {cidr: "::/0", except: {{ $six | toJson }}}
{{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* All addresses except cloud metadata: our services call the API server, a login provider and a store. */}}
{{- define "benchpool.network.outside" -}}
- to:
    - ipBlock: {cidr: 0.0.0.0/0, except: [169.254.169.254/32]}
    - ipBlock: {cidr: "::/0", except: ["fd00:ec2::254/128"]}
{{- end }}

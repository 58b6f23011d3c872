{{/* One release is for one cluster, so names are plain. */}}
{{- define "nightshift.labels" -}}
{{ include "nightshift.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "nightshift.selector" -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Another name than the daemon's, which its Service and its NetworkPolicy go by. */}}
{{- define "nightshift.agentSelector" -}}
app.kubernetes.io/name: nightshift-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nightshift.agentLabels" -}}
{{ include "nightshift.agentSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "nightshift.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "nightshift.tlsSecret" -}}
{{ .Values.tls.secret | default "nightshift-tls" }}
{{- end }}

{{- define "nightshift.account" -}}
system:serviceaccount:{{ .Release.Namespace }}:nightshift
{{- end }}

{{/* Names in a certificate: the service's, then those of the values. */}}
{{- define "nightshift.hosts" -}}
{{- $own := list "nightshift" (printf "nightshift.%s" .Release.Namespace) (printf "nightshift.%s.svc" .Release.Namespace) (printf "nightshift.%s.svc.cluster.local" .Release.Namespace) "localhost" "127.0.0.1" -}}
{{- concat $own .Values.tls.hosts | uniq | toJson -}}
{{- end }}

{{/* What cannot be said in values.schema.json: two values that do not go together. */}}
{{- define "nightshift.check" -}}
{{- if and (eq .Values.tls.mode "existing") (not .Values.tls.secret) -}}
{{- fail "tls.mode is existing: tls.secret must name the Secret (type kubernetes.io/tls)" -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "certManager") (not .Values.tls.issuer.name) -}}
{{- fail "tls.mode is certManager: tls.issuer.name must name an issuer" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true: ingress.host must say under which name" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (ne .Values.tls.mode "none") (not .Values.ingress.backendTLS) -}}
{{- fail "an ingress ends TLS itself: set tls.mode to none, or ingress.backendTLS to true where the controller is told to speak TLS with the pod" -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "none") (not .Values.ingress.enabled) (ne .Values.service.type "ClusterIP") -}}
{{- fail "tls.mode is none and service.type is not ClusterIP: passwords and tokens would cross the network in the clear" -}}
{{- end -}}
{{- if hasPrefix "kube-" .Values.tenants.namespacePrefix -}}
{{- fail "tenants.namespacePrefix: namespaces that begin with kube- are the cluster's own" -}}
{{- end -}}
{{- end }}

{{- define "nightshift.url" -}}
{{- if .Values.externalURL -}}
{{ .Values.externalURL }}
{{- else if .Values.ingress.enabled -}}
https://{{ .Values.ingress.host }}
{{- end -}}
{{- end }}

{{/* nightshift.yaml: what the values say, and over it .Values.settings. */}}
{{- define "nightshift.settings" -}}
{{- $own := dict "engine" "kube" "listen" "0.0.0.0:7433" "state" "/var/lib/nightshift" "run" "/run/nightshift" -}}
{{- $_ := set $own "kube_namespace" .Release.Namespace -}}
{{- $_ := set $own "kube_namespace_prefix" .Values.tenants.namespacePrefix -}}
{{- $_ := set $own "kube_scheduler" .Values.jobs.scheduler -}}
{{- $_ := set $own "kube_init_image" (.Values.jobs.initImage | default (include "nightshift.image" .)) -}}
{{- $_ := set $own "kube_init_path" .Values.jobs.initPath -}}
{{- $_ := set $own "kube_gpu" .Values.jobs.gpuResource -}}
{{- $_ := set $own "kube_state_size" .Values.jobs.stateSize -}}
{{- $_ := set $own "kube_home_size" .Values.jobs.homeSize -}}
{{- $_ := set $own "kube_home_access" .Values.jobs.homeAccess -}}
{{- with .Values.tenants.userPrefix }}{{ $_ := set $own "kube_user_prefix" . }}{{ end -}}
{{- with .Values.jobs.image }}{{ $_ := set $own "kube_image" . }}{{ end -}}
{{- with .Values.jobs.storageClass }}{{ $_ := set $own "kube_storage_class" . }}{{ end -}}
{{- with include "nightshift.url" . }}{{ $_ := set $own "external_url" . }}{{ end -}}
{{- with .Values.trustedProxies }}{{ $_ := set $own "trusted_proxies" . }}{{ end -}}
{{- if ne .Values.tls.mode "none" -}}
{{- $_ := set $own "tls_cert" "/etc/nightshift/tls/tls.crt" -}}
{{- $_ := set $own "tls_key" "/etc/nightshift/tls/tls.key" -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.settings)) -}}
{{- end }}

{{/* The services as the templates walk them: name, key in values, port, and what is special about each. */}}
{{- define "mlp.services" -}}
control-plane: {key: controlPlane, port: 18002, migrate: true, command: control-plane, state: true}
inference: {key: inference, port: 18001, migrate: true, command: inference, state: true}
bus-bridge: {key: busBridge, port: 18003, command: bus-bridge}
assistant: {key: assistant, port: 18004, migrate: true, command: assistant}
dashboard: {key: dashboard, port: 8099, migrate: true, command: dashboard-bff}
worker: {key: worker, port: 18005, command: worker, state: true}
{{- end }}

{{- define "mlp.fullname" -}}
{{- printf "%s-%s" .root.Release.Name .service | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "mlp.selector" -}}
app.kubernetes.io/name: {{ .service }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "mlp.labels" -}}
{{ include "mlp.selector" . }}
app.kubernetes.io/part-of: mlp-platform
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "mlp.image" -}}
{{ printf "%s/%s:%s" .root.Values.image.prefix .service (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end }}

{{- define "mlp.secret" -}}
{{ index .root.Values.secrets .service | default (include "mlp.fullname" .) }}
{{- end }}

{{- define "mlp.url" -}}
http://{{ include "mlp.fullname" (dict "root" .root "service" .service) }}:{{ index (include "mlp.services" . | fromYaml) .service "port" }}
{{- end }}

{{- define "mlp.publicUrl" -}}
{{- if .Values.dashboard.publicUrl }}{{ .Values.dashboard.publicUrl }}
{{- else if .Values.ingress.host }}{{ ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.host }}
{{- else }}http://127.0.0.1:8099{{ end }}
{{- end }}

{{- define "mlp.toolsUrl" -}}
{{- if .Values.dashboard.toolsUrl }}{{ .Values.dashboard.toolsUrl }}
{{- else if .Values.ingress.toolsHost }}{{ ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}://{{ .Values.ingress.toolsHost }}
{{- else }}http://127.0.0.1:8098{{ end }}
{{- end }}

{{/* What every container may and may not do. */}}
{{- define "mlp.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "mlp.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Copies the mounted Secret for the service's user alone: services refuse keys that a group may read. */}}
{{- define "mlp.secretsContainer" -}}
- name: secrets
  image: {{ include "mlp.image" (dict "root" .root "service" "stack") }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: [copy, /run/mounted, /run/secrets]
  securityContext: {{- include "mlp.securityContext" . | nindent 4 }}
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
  volumeMounts:
    - {name: mounted, mountPath: /run/mounted, readOnly: true}
    - {name: secrets, mountPath: /run/secrets}
{{- end }}

{{- define "mlp.secretsVolumes" -}}
- {name: mounted, secret: {secretName: {{ include "mlp.secret" . }}, defaultMode: 0440}}
- {name: secrets, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: tmp, emptyDir: {sizeLimit: {{ .scratch | default "256Mi" }}}}
{{- end }}

{{/* The environment of a service: what compose.yaml gives it, with this release's addresses. */}}
{{- define "mlp.env" -}}
{{- $root := .root }}
{{- $secret := "/run/secrets/" }}
{{- $env := dict "LOG_LEVEL" $root.Values.logLevel }}
{{- if has .service (list "control-plane" "inference" "assistant" "dashboard") }}
{{- $_ := set $env "PLATFORM_DATABASE_URL_FILE" (print $secret "PLATFORM_DATABASE_URL") }}
{{- $_ := set $env "NATS_URL_FILE" (print $secret "NATS_URL") }}
{{- $_ := set $env "NATS_REPLICAS" (toString $root.Values.natsReplicas) }}
{{- $_ := set $env "REDIS_URL_FILE" (print $secret "REDIS_URL") }}
{{- $_ := set $env "COORDINATOR" "redis" }}
{{- end }}
{{- $controlPlane := include "mlp.url" (dict "root" $root "service" "control-plane") }}
{{- $inference := include "mlp.url" (dict "root" $root "service" "inference") }}
{{- $bridge := include "mlp.url" (dict "root" $root "service" "bus-bridge") }}
{{- $own := dict }}
{{- $files := list }}
{{- if eq .service "control-plane" }}
{{- $files = list "CONTROL_PLANE_TOKEN" "CONTROL_PLANE_CREDENTIALS_JSON" "DELEGATION_TRUST_JSON" "PREFECT_API_KEY" "MLFLOW_TRACKING_TOKEN" "SERVING_TOKEN" "MODELREPO_WEBHOOK_SECRET" }}
{{- if $root.Values.modelRepository.fromGit }}{{ $files = append $files "MODELREPO_GIT_URL" }}{{ end }}
{{- $own = dict "CONTROL_PLANE_ADDR" "0.0.0.0:18002" "CONTROL_PLANE_SEPARATION_OF_DUTIES" "enforce" "TRACKING_URI" $root.Values.tracker.url
  "PREFECT_API_URL" $root.Values.orchestrator.apiUrl "SERVING_URL" $inference
  "MODELREPO_ENV" $root.Values.modelRepository.environment "MODELREPO_CACHE_DIR" "/tmp/modelrepo" "AUDIT_SIGNING_KEY_FILE" "/run/secrets/audit-signing.key" }}
{{- if $root.Values.controlPlane.auditClaim }}{{ $_ := set $own "AUDIT_STATE_DIR" "/var/lib/audit" }}{{ end }}
{{- if not $root.Values.modelRepository.fromGit }}{{ $_ := set $own "MODELREPO_DIR" "/srv/modelrepo" }}{{ end }}
{{- if $root.Values.busBridge.enabled }}{{ $_ := set $own "BUS_BRIDGE_URL" $bridge }}{{ end }}
{{- else if eq .service "inference" }}
{{- $files = list "INFERENCE_CREDENTIALS_JSON" "DELEGATION_TRUST_JSON" "CONTROL_PLANE_TOKEN" "MLFLOW_TRACKING_TOKEN" }}
{{- $own = dict "INFERENCE_ADDR" "0.0.0.0:18001" "CONTROL_PLANE_SEPARATION_OF_DUTIES" "enforce" "TRACKING_URI" $root.Values.tracker.url
  "CONTROL_PLANE_URL" $controlPlane "MODEL_CACHE_DIR" "/var/lib/platform/models" }}
{{- else if eq .service "bus-bridge" }}
{{- $files = list "BUS_NATS_URL" "BUS_CREDENTIALS_JSON" "SERVING_TOKEN" "CONTROL_PLANE_TOKEN" }}
{{- $own = dict "BUS_ADDR" "0.0.0.0:18003" "SERVING_URL" $inference "CONTROL_PLANE_URL" $controlPlane }}
{{- else if eq .service "assistant" }}
{{- $files = list "ASSISTANT_ADMIN_KEYS" "ASSISTANT_OPERATOR_KEYS" "ASSISTANT_READONLY_KEYS" "DELEGATION_TRUST_JSON" }}
{{- $own = dict "ASSISTANT_ADDR" "0.0.0.0:18004" }}
{{- else if eq .service "dashboard" }}
{{- $files = list "DASHBOARD_ADMIN_PASSWORD" "DASHBOARD_VIEWER_PASSWORD" "DASHBOARD_JWT_SECRET" "DASHBOARD_SECRET_KEY" "ASSISTANT_READONLY_KEY" "ASSISTANT_OPERATOR_KEY" "MLFLOW_TRACKING_TOKEN" "PREFECT_API_KEY" }}
{{- $public := include "mlp.publicUrl" $root }}
{{- $own = dict "DASHBOARD_ADDR" "0.0.0.0:8099" "DASHBOARD_TOOLS_ADDR" "0.0.0.0:8098" "DASHBOARD_PUBLIC_URL" $public "DASHBOARD_TOOLS_URL" (include "mlp.toolsUrl" $root)
  "DASHBOARD_ALLOWED_HOSTS" (printf "%s,127.0.0.1,localhost,%s" ((urlParse $public).host | splitList ":" | first) (include "mlp.fullname" .))
  "DASHBOARD_SESSION_COOKIE_SECURE" (toString (hasPrefix "https://" $public)) "DASHBOARD_ACT_KEY_FILE" "/run/secrets/delegation.key"
  "TRACKING_URI" $root.Values.tracker.url "ORCHESTRATOR_API_URL" $root.Values.orchestrator.apiUrl "CONTROL_PLANE_URL" $controlPlane "SERVING_URL" $inference }}
{{- if $root.Values.busBridge.enabled }}{{ $_ := set $own "BUS_BRIDGE_URL" $bridge }}{{ end }}
{{- if $root.Values.assistant.enabled }}{{ $_ := set $own "ASSISTANT_URL" (include "mlp.url" (dict "root" $root "service" "assistant")) }}{{ end }}
{{- else if eq .service "worker" }}
{{- $files = list "PREFECT_API_KEY" "MLFLOW_TRACKING_TOKEN" "CONTROL_PLANE_TOKEN" }}
{{- $own = dict "WORKER_ADDR" "0.0.0.0:18005" "WORKER_STATE_DIR" "/var/lib/platform/worker" "PREFECT_API_URL" $root.Values.orchestrator.apiUrl
  "TRACKING_URI" $root.Values.tracker.url "CONTROL_PLANE_URL" $controlPlane "MODELREPO_DIR" "/srv/modelrepo"
  "MODELREPO_ENV" $root.Values.modelRepository.environment "PLATFORM_SCHEDULER_MODE" "mock" "DATA_CACHE_DIR" "/tmp" }}
{{- end }}
{{- range $files }}{{ $_ := set $env (print . "_FILE") (print $secret .) }}{{ end }}
{{- $env = mergeOverwrite $env $own (index $root.Values .key).env }}
{{- range $name, $value := $env }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "aenv.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "aenv.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "aenv.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "aenv.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* A value of a label. What is too long is cut, and a digest tells it from others with the same beginning. */ -}}
{{- define "aenv.group" -}}
{{- $full := printf "%s.%s" .Release.Namespace (include "aenv.fullname" .) -}}
{{- if gt (len $full) 63 -}}
{{- printf "%s-%s" (trunc 52 $full) (sha256sum $full | trunc 10) -}}
{{- else -}}
{{- $full -}}
{{- end -}}
{{- end -}}

{{- define "aenv.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/part-of: aenv
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Argument: a list of the root context and the component. */ -}}
{{- define "aenv.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "aenv.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* Argument: a list of the root context and the image's values. */ -}}
{{- define "aenv.image" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $root.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "aenv.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "aenv.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "aenv.adminSecret" -}}
{{- default (printf "%s-admin" (include "aenv.fullname" .)) .Values.adminToken.existingSecret -}}
{{- end -}}

{{- define "aenv.adminKey" -}}
{{- ternary .Values.adminToken.key "token" (ne .Values.adminToken.existingSecret "") -}}
{{- end -}}

{{- define "aenv.metricsSecret" -}}
{{- default (printf "%s-metrics" (include "aenv.fullname" .)) .Values.metricsToken.existingSecret -}}
{{- end -}}

{{- define "aenv.metricsKey" -}}
{{- ternary .Values.metricsToken.key "token" (ne .Values.metricsToken.existingSecret "") -}}
{{- end -}}

{{- define "aenv.initSecret" -}}
{{- printf "%s-init" (include "aenv.fullname" .) -}}
{{- end -}}

{{- define "aenv.redisName" -}}
{{- printf "%s-redis" (include "aenv.fullname" .) -}}
{{- end -}}

{{- define "aenv.redisSecret" -}}
{{- default (include "aenv.redisName" .) .Values.redis.existingSecret -}}
{{- end -}}

{{- define "aenv.redisKey" -}}
{{- ternary .Values.redis.key "password" (ne .Values.redis.existingSecret "") -}}
{{- end -}}

{{- define "aenv.claim" -}}
{{- default (printf "%s-home" (include "aenv.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{- /* The URL of the data port, as clients see it. */ -}}
{{- define "aenv.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{- .Values.publicUrl -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.dataHost -}}
{{- else if .Values.gateway.enabled -}}
{{- printf "%s://%s" (ternary "https" "http" .Values.gateway.tls) .Values.gateway.dataHost -}}
{{- end -}}
{{- end -}}

{{- /* The settings that the chart sets, which values must not. */ -}}
{{- define "aenv.ownSettings" -}}
adminToken metricsToken host controlPort dataPort engine home store publicUrl kubeconfig kubeServer kubeNamespace kubeGroup kubeNetworkPolicies initKeyFile baseImage podTemplates drainTime
{{- end -}}

{{- define "aenv.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* A pod template as an object, from text or from YAML. Argument: a list of the root context, the name and the value. */ -}}
{{- define "aenv.podTemplate" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $value := index . 2 -}}
{{- if not (regexMatch "^[A-Za-z0-9][-._A-Za-z0-9]{0,62}$" $name) -}}
{{- fail (printf "podTemplates has a template '%s'; a name has letters, digits, '-', '.' and '_', and begins with a letter or a digit" $name) -}}
{{- end -}}
{{- $object := $value -}}
{{- if kindIs "string" $value -}}
{{- $object = tpl $value $root | fromYaml -}}
{{- end -}}
{{- if hasKey $object "Error" -}}
{{- fail (printf "podTemplates.%s is not valid YAML: %s" $name $object.Error) -}}
{{- end -}}
{{- if not $object.kind -}}
{{- fail (printf "podTemplates.%s has no 'kind'; write a whole object, such as a Pod with apiVersion, kind and spec" $name) -}}
{{- end -}}
{{- $expected := get (dict "deployment" "Deployment" "service" "Service" "pvc" "PersistentVolumeClaim") $name | default "Pod" -}}
{{- if ne $object.kind $expected -}}
{{- fail (printf "podTemplates.%s is a %s; it must be a %s" $name $object.kind $expected) -}}
{{- end -}}
{{- toJson $object -}}
{{- end -}}

{{- /* Gives a volume to the user of the servers and of Redis. Argument: a list of the root context, the image, the volume's name and its path. */ -}}
{{- define "aenv.ownVolume" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
- name: own-volume
  image: {{ include "aenv.image" (list $root $image) | quote }}
  imagePullPolicy: {{ $image.pullPolicy }}
  command: [chown, "65532:65532", {{ index . 3 }}]
  securityContext:
    runAsUser: 0
    runAsGroup: 0
    runAsNonRoot: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [CHOWN, DAC_OVERRIDE]
  volumeMounts:
    - { name: {{ index . 2 }}, mountPath: {{ index . 3 }} }
{{- end -}}

/** Values that people install with, by what they are for. Each must be valid and accepted by an API server. */
export const variants = {
  defaults: {},
  "several servers on several nodes": {
    replicaCount: 3,
    persistence: { accessMode: "ReadWriteMany", size: "100Gi", storageClassName: "shared", keepOnUninstall: true },
    server: {
      settings: { maxInstances: 5_000, defaultTtl: "1h" },
      env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/ca.pem" }],
      nodeSelector: { pool: "servers" },
      tolerations: [{ key: "servers", operator: "Exists" }],
      priorityClassName: "system-cluster-critical",
      podAnnotations: { "example.org/team": "rl" },
      podLabels: { team: "rl" },
      podDisruptionBudget: { maxUnavailable: "30%" },
    },
    imagePullSecrets: ["registry"],
    commonLabels: { team: "rl" },
  },
  "a Redis of your own, by a Secret": {
    redis: { enabled: false, external: { existingSecret: "aenv-store", key: "address" } },
    adminToken: { existingSecret: "aenv-token", key: "value" },
    metricsToken: { existingSecret: "prometheus-token", key: "value" },
  },
  "a Redis of your own, by its address": { redis: { enabled: false, external: { url: "redis+sentinel://one:26379,two:26379/main" } } },
  "nothing that lasts": { persistence: { enabled: false }, redis: { persistence: { enabled: false } } },
  "volumes and passwords that exist": {
    persistence: { existingClaim: "bundles" },
    redis: { existingSecret: "redis", key: "secret", persistence: { keepOnUninstall: true } },
    serviceAccount: { create: false, name: "aenv" },
    rbac: { create: false },
    sandbox: { createNamespace: false },
  },
  "an ingress and quotas": {
    ingress: { enabled: true, className: "nginx", controlHost: "aenv.example", dataHost: "data.aenv.example", tlsSecret: "aenv-tls" },
    sandbox: {
      resourceQuota: { hard: { pods: "500", "requests.cpu": "200" } },
      limitRange: { limits: [{ type: "Container", default: { memory: "2Gi" } }] },
      namespaceLabels: { team: "rl" },
    },
    networkPolicy: {
      serverFrom: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress" } } }],
      sandboxEgress: [{ to: [{ ipBlock: { cidr: "10.1.2.3/32" } }], ports: [{ protocol: "TCP", port: 443 }] }],
    },
  },
  "images by digest, as a load balancer": {
    image: { digest: `sha256:${"a".repeat(64)}` },
    baseImage: { digest: `sha256:${"b".repeat(64)}` },
    service: { type: "LoadBalancer", controlPort: 80, dataPort: 81 },
    publicUrl: "https://aenv.example:81",
    fullnameOverride: "platform",
    networkPolicy: { enabled: false },
    server: { podDisruptionBudget: { enabled: false }, affinity: { nodeAffinity: {} } },
  },
  "pod templates as YAML and as text": {
    podTemplates: {
      singleContainer: { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: "main" }], runtimeClassName: "gvisor" } },
      gpu: 'apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: {{ .Values.sandboxNamespace }}\nspec:\n  containers: [{ name: "main" }]\n',
      deployment: { apiVersion: "apps/v1", kind: "Deployment", spec: {} },
      service: { apiVersion: "v1", kind: "Service", spec: {} },
      pvc: { apiVersion: "v1", kind: "PersistentVolumeClaim", spec: {} },
    },
  },
} as const satisfies Record<string, object>;

/** Values with objects that a cluster knows only with the operator of Prometheus and the Gateway API. */
export const extended = {
  gateway: {
    enabled: true,
    parentRefs: [{ name: "public", namespace: "gateways" }],
    controlHost: "aenv.example",
    dataHost: "data.aenv.example",
  },
  serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
};

import type { ClusterAccess } from "../api/access.ts";
import type { KubernetesObject } from "../api/client.ts";
import type { RightsRule } from "../rights.ts";
import type { TestNamespace } from "./namespace.ts";

/** A permission to do one thing with one kind of objects. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

/** The rules of a Role, one by one. */
export function rightsOf(rules: readonly RightsRule[]): Right[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb })))),
  );
}

/** Creates an account with these rights in the namespace, and returns how to use it. */
export async function createAccount(namespace: TestNamespace, name: string, rights: readonly Right[]): Promise<ClusterAccess> {
  const { api } = namespace;
  const rbac = { apiGroup: "rbac.authorization.k8s.io", path: `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace.name}` };
  const metadata = { name };
  const make = (path: string, object: KubernetesObject & Readonly<Record<string, unknown>>) => api.create<KubernetesObject>(path, object);
  await make(namespace.path("serviceaccounts"), { apiVersion: "v1", kind: "ServiceAccount", metadata });
  const rules = rights.map(({ group, resource, verb }) => ({ apiGroups: [group], resources: [resource], verbs: [verb] }));
  await make(`${rbac.path}/roles`, { apiVersion: `${rbac.apiGroup}/v1`, kind: "Role", metadata, rules });
  await make(`${rbac.path}/rolebindings`, {
    apiVersion: `${rbac.apiGroup}/v1`,
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: rbac.apiGroup, kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name, namespace: namespace.name }],
  });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata, spec: { expirationSeconds: 3_600 } };
  const { status } = (await make(namespace.path("serviceaccounts", `${name}/token`), request)) as KubernetesObject & {
    status: { token: string };
  };
  const { server, ca } = namespace.access;
  return { server, ...(ca !== undefined && { ca }), token: status.token };
}

/** A kubeconfig for this access. */
export function kubeconfigOf({ server, ca, certificate, key, token }: ClusterAccess): string {
  const base64 = (text: string | undefined) => (text === undefined ? undefined : Buffer.from(text).toString("base64"));
  const cluster = { server, "certificate-authority-data": base64(ca) };
  const user = { token, "client-certificate-data": base64(certificate), "client-key-data": base64(key) };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  });
}

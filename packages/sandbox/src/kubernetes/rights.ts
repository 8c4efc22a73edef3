/** A rule of a Role. */
export interface RightsRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** Everything that the engine does in its namespace, and therefore all that its account needs. */
export const requiredRights: readonly RightsRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: [""], resources: ["events"], verbs: ["create"] },
  { apiGroups: [""], resources: ["resourcequotas"], verbs: ["list"] },
  // Needed for services, which are deployments.
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "create", "update", "delete"] },
  { apiGroups: [""], resources: ["services"], verbs: ["get", "list", "create", "update", "delete"] },
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get", "create", "delete"] },
  // Only `get` if the policy is installed already.
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["get", "create"] },
];

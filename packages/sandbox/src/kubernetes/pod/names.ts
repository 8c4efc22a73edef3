import { createHash } from "node:crypto";

/** Pods of one home are found, adopted and removed by its servers; all others are left alone. */
export const HOME_LABEL = "aenv.io/home";
export const EGRESS_LABEL = "aenv.io/egress";
/** Labels of the sandbox, as the platform gave them, under a prefix. */
const LABEL_PREFIX = "aenv.io/label-";

/** Annotations: what a label cannot hold, or nobody selects by. */
export const ID_ANNOTATION = "aenv.io/sandbox";
export const LABELS_ANNOTATION = "aenv.io/labels";
export const STATE_ANNOTATION = "aenv.io/state";
export const READY_ANNOTATION = "aenv.io/ready";

/** Of the original, by the platform's labels. */
const ORIGINAL_LABELS = {
  env: "business/aenv-name",
  version: "business/aenv-version",
  owner: "business/aenv-owner",
  ttl: "business/aenv-ttl",
};

const MAX_NAME = 63;
const SUFFIX = 6;

/**
 * The pod of a sandbox: readable words and six letters or digits, as the original names pods. The same for the same sandbox of the same
 * home, so that the API server refuses a second one.
 */
export function podName(homeId: string, id: string): string {
  const digest = createHash("sha256").update(`${homeId}\n${id}`).digest("hex");
  const suffix = BigInt(`0x${digest.slice(0, 16)}`)
    .toString(36)
    .padStart(SUFFIX, "0")
    .slice(-SUFFIX);
  const words = id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_NAME - SUFFIX - 1)
    .replace(/^-+|-+$/g, "");
  return words === "" ? `sandbox-${suffix}` : `${words}-${suffix}`;
}

export function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text);
}

export function isLabelName(text: string): boolean {
  return text.length > 0 && isLabelValue(text);
}

/** Labels that Kubernetes accepts, and the others as annotations. All of them are also in one annotation, from which they are read back. */
export function labelsOf(labels: Readonly<Record<string, string>>): {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
} {
  const valid: Record<string, string> = {};
  const others: Record<string, string> = {};
  for (const [key, value] of Object.entries(labels)) {
    const suffix = `label-${key}`;
    if (!isLabelName(suffix)) continue;
    (isLabelValue(value) ? valid : others)[`${LABEL_PREFIX}${key}`] = value;
  }
  for (const [key, value] of Object.entries(originalLabels(labels))) (isLabelValue(value) ? valid : others)[key] = value;
  return { labels: valid, annotations: { ...others, [LABELS_ANNOTATION]: JSON.stringify(labels) } };
}

function originalLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const { env, ...more } = labels;
  const [name, version] = (env ?? "").split("@", 2);
  const known = { ...more, ...(name !== undefined && name !== "" && { env: name }), ...(version !== undefined && { version }) };
  const found: Record<string, string> = {};
  for (const [key, label] of Object.entries(ORIGINAL_LABELS)) {
    const value = (known as Readonly<Record<string, string>>)[key];
    if (value !== undefined) found[label] = value;
  }
  return found;
}

export function readLabels(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  try {
    return JSON.parse(annotations[LABELS_ANNOTATION] ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

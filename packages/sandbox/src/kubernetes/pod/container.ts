import { PlatformError, type Resources } from "@aenv/contract";
import { outsideOnly } from "../../spec/listening.ts";
import { INIT_PATH } from "../../spec/mounts.ts";
import { MAIN } from "./default-templates.ts";
import { cpuQuantity, mebibytes, quantityValue, smaller } from "./quantity.ts";
import type { Container, EnvVar, Fields, Pod, Quantities } from "./types.ts";

/** Where the base image has the init. */
export const BASE_INIT = "/opt/aenv/init";
/** Any user but root, as the restricted Pod Security Standard demands. */
const USER = 1000;

/** The container that runs the program of a sandbox. */
export function mainOf(template: Pod): Container {
  const { containers } = template.spec;
  const main = containers.find(({ name }) => name === MAIN) ?? containers[0];
  if (main === undefined) throw new PlatformError("request.invalid", "the pod template has no container");
  return main;
}

/** The command that a template gives to its main container; empty if it leaves that to the image. */
export function templateCommand(template: Pod, more: readonly string[] = []): readonly string[] {
  const { command = [], args = [] } = mainOf(template);
  // Arguments alone are those of the image's own program, which only the node knows.
  return command.length === 0 ? [] : [...command, ...args, ...more];
}

/** The init as process 1: that of the base image, or the copy of it. */
export function initCommand(isBase: boolean, port: number, initKey: string): readonly string[] {
  return [isBase ? BASE_INIT : INIT_PATH, "--listen", `tcp::${port}`, "--key", initKey];
}

/** Each name once. The sandbox's win over the template's, and a later one of the template over an earlier one. */
export function variables(template: readonly EnvVar[], own: Readonly<Record<string, string>>): EnvVar[] {
  const all = new Map<string, EnvVar>([
    ["POD_NAME", fromField("POD_NAME", "metadata.name")],
    ["POD_NAMESPACE", fromField("POD_NAMESPACE", "metadata.namespace")],
  ]);
  for (const variable of template) all.set(variable.name, variable);
  for (const [name, value] of Object.entries(own)) all.set(name, { name, value });
  return [...all.values()];
}

/** Before those of the operator's template, which may say otherwise. */
export const outsideVariables: readonly EnvVar[] = Object.entries(outsideOnly).map(([name, value]) => ({ name, value }));

export function fromField(name: string, fieldPath: string): EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** The limits of the specification, else those of the template. The template's requests stay, as far as the limits allow. */
export function resources(
  { resources: { limits = {}, requests = {} } = {} }: Container,
  { memoryMb, cpus, diskMb }: Resources = {},
): NonNullable<Container["resources"]> {
  const all: Record<string, string> = {
    ...texts(limits),
    ...(cpus !== undefined && { cpu: cpuQuantity(cpus) }),
    ...(memoryMb !== undefined && { memory: mebibytes(memoryMb) }),
    ...(diskMb !== undefined && { "ephemeral-storage": mebibytes(diskMb) }),
  };
  for (const [name, value] of Object.entries(all)) {
    if (!(quantityValue(value, `the limit of ${name}`) > 0))
      throw new PlatformError("request.invalid", `the limit of ${name} is '${value}'; it must be more than nothing`);
  }
  const asked = Object.entries(texts(requests)).map(([name, value]) => {
    const limit = all[name];
    return [name, limit === undefined ? value : smaller(value, limit, `the request of ${name}`)];
  });
  return { limits: all, requests: Object.fromEntries(asked) as Quantities };
}

/** The memory limit of the container, for messages; null if it has none. */
export function memoryLimitMb(container: Container, own?: Resources): number | null {
  const { memory } = resources(container, own).limits ?? {};
  return memory === undefined ? null : Math.floor(quantityValue(memory, "the limit of memory") / 2 ** 20);
}

/** YAML reads `cpu: 2` as a number. */
export function texts(quantities: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, String(value)]));
}

/** What the restricted Pod Security Standard demands, unless the template says otherwise. */
export function podSecurity(template: Fields = {}): Fields {
  const user = template.runAsUser ?? USER;
  return {
    runAsNonRoot: user !== 0,
    runAsUser: user,
    runAsGroup: user,
    fsGroup: user,
    seccompProfile: { type: "RuntimeDefault" },
    ...template,
  };
}

export function containerSecurity(template: Fields = {}): Fields {
  return { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, ...template };
}

/** Templates of the original name an image that the platform replaces. */
export function isGiven(image: string | undefined): image is string {
  return image !== undefined && image !== "" && image !== "placeholder";
}

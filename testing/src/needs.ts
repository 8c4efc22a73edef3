import { describe, it } from "vitest";
import { type Component, type ComponentName, components } from "./components.ts";

/** The reporter's information about a skipped suite. */
export interface MissingComponent {
  readonly component: string;
  readonly reason: string;
  readonly get: string;
}

declare module "vitest" {
  interface TaskMeta {
    missing?: MissingComponent;
  }
}

const NOT_REACHED = "no changed file reaches it";

const probed = new Map<ComponentName, string | null>();

/**
 * Why a component is missing on this machine, or null if it is available. Checked once per test file.
 * `AENV_WITHOUT=python,frameworks` simulates a machine without them.
 */
export function missing(name: ComponentName): string | null {
  let reason = probed.get(name);
  if (reason === undefined) {
    reason = isLeftOut(name)
      ? NOT_REACHED
      : isNamed(name, process.env.AENV_WITHOUT)
        ? "left out by AENV_WITHOUT"
        : components[name].probe();
    probed.set(name, reason);
  }
  return reason;
}

/**
 * A `describe` for tests that need more than Node. If the component is missing, the suite is skipped and its name contains the
 * reason; with `AENV_REQUIRE=all`, or a comma-separated list that contains it, the suite fails and names what to install.
 * `AENV_LEFT_OUT` names components that are skipped although they are required: CI sets it to those that no changed file reaches.
 * A skipped suite's body still runs, to count its tests: load modules of the component inside tests or hooks.
 */
export function describeNeeding(name: ComponentName, title: string, body: () => void): void {
  const reason = missing(name);
  if (reason === null) {
    describe(title, body);
    return;
  }
  const { get, isGiven = false }: Component = isLeftOut(name) ? { ...components[name], get: "run .ci/nightly" } : components[name];
  const required = process.env.AENV_REQUIRE;
  if (!isLeftOut(name) && isNamed(name, isGiven ? required?.replace(/\ball\b/g, "") : required)) {
    describe(title, () => {
      it(`needs ${name}`, () => {
        throw new Error(`${name} is required by AENV_REQUIRE but missing: ${reason}. To get it: ${get}`);
      });
    });
    return;
  }
  describe(`${title} (needs ${name}: ${reason})`, { skip: true, meta: { missing: { component: name, reason, get } } }, body);
}

function isLeftOut(name: string): boolean {
  return isNamed(name, process.env.AENV_LEFT_OUT);
}

/** Whether a list such as `python,frameworks` contains the component; `all` contains each. */
export function isNamed(name: string, list: string | undefined): boolean {
  const names = (list ?? "").split(",").map((word) => word.trim());
  return names.includes("all") || names.includes(name);
}

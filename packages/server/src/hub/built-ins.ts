import { type EnvironmentConfig, formatRef, isPlatformError, PlatformError } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import { isInScope } from "../access/scopes.ts";
import { highestInRange } from "./versions/order.ts";
import { isAdmin } from "./versions/rights.ts";

/** The environments that come with the platform. */
export interface BuiltIns {
  /** The version of the built-in environment of this name; null if there is none. */
  versionOf(name: string): string | null;
  bundle(name: string): Promise<BuiltInBundle>;
}

export interface BuiltInBundle {
  readonly config: EnvironmentConfig;
  /** `sha256:` and the digest of the archive. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

export interface PublicationsOptions {
  readonly builtIns: BuiltIns;
  /** Uploads and publishes a bundle in the caller's name. */
  readonly publish: (bundle: BuiltInBundle, caller: Caller) => Promise<unknown>;
}

/**
 * Publishes built-in environments at their first use, in the name of a caller who may publish. A caller who may not is told how:
 * otherwise a trainer could bring code to the server.
 */
export class BuiltInPublications {
  readonly #options: PublicationsOptions;
  /** Publications that run, by owner and name: instances of a batch ask for the same one at once. */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(options: PublicationsOptions) {
    this.#options = options;
  }

  /** False if no built-in environment has this name. */
  async publish(name: string, version: string, caller: Caller): Promise<boolean> {
    const own = this.#options.builtIns.versionOf(name);
    if (own === null || !isInScope(caller, name)) return false;
    const ref = formatRef({ name, version: own });
    if (!isMeant(version, own)) throw notFound(formatRef({ name, version }), `this AEnv comes with ${ref}`);
    if (!isAdmin(caller) && !caller.roles.has("publisher"))
      throw notFound(
        ref,
        `it comes with AEnv and is not published on this server; a publisher does that with: aenv push --work-dir ${name} --visibility public`,
      );
    const key = JSON.stringify([caller.owner, name]);
    const running = this.#running.get(key) ?? this.#begin(name, caller).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    await running;
    return true;
  }

  /** Throws if exactly this version comes with the platform. */
  assertNotNewer(name: string, version: string): void {
    if (version !== this.#options.builtIns.versionOf(name)) return;
    throw notFound(
      formatRef({ name, version }),
      `it comes with this AEnv, and the server has another version; the publisher of '${name}' publishes it with: aenv push --work-dir ${name}`,
    );
  }

  async #begin(name: string, caller: Caller): Promise<void> {
    const { builtIns, publish } = this.#options;
    try {
      await publish(await builtIns.bundle(name), caller);
    } catch (error) {
      // Another server on this store may have been faster.
      if (!isPlatformError(error, "environment.exists")) throw error;
    }
  }
}

function notFound(ref: string, hint: string): PlatformError {
  return new PlatformError("environment.not_found", `Environment not found: '${ref}'; ${hint}`, { details: { ref } });
}

/** Whether a requested version, which may be empty or a range, is that of the built-in environment. */
function isMeant(requested: string, own: string): boolean {
  if (requested === "" || requested === "latest" || requested === own) return true;
  return highestInRange([{ version: own, createdAt: "" }], requested) !== null;
}

import type { KeyObject } from "node:crypto";
import { messageOf, TimedSignal } from "@aenv/contract";
import type { ServiceBundle } from "../../engine/service.ts";
import { connectInit } from "../../init/connection.ts";
import { sendFolder } from "../../init/folder.ts";
import { BUNDLES, INIT_PORT } from "../pod/pod.ts";
import { progressOf } from "../pod/progress.ts";
import type { Pod } from "../pod/types.ts";
import { isReady } from "./status.ts";

interface Sending {
  readonly service: string;
  readonly done: Promise<void>;
  /** Null while it goes on, and when it has succeeded. */
  problem: string | null;
  hasFailed: boolean;
}

/** A bundle that takes longer is sent again from the beginning. */
const SEND_MS = 120_000;

/**
 * Sends the bundles of services to new pods of their Deployments, so that pods need no connection to the platform. Every server may send it:
 * the folder appears once, and complete. A container that is started again finds it in the volume of its pod.
 */
export class ReplicaBundles {
  readonly #key: KeyObject;
  /** Sendings by the uid of the pod. */
  readonly #sendings = new Map<string, Sending>();
  readonly #stop = new AbortController();

  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** Begins to send it to the pods of a service that need it. Returns why that did not work for one of them before. */
  send(service: string, bundle: ServiceBundle, pods: readonly Pod[]): string | null {
    const uids = new Set(pods.map(uidOf));
    let problem: string | null = null;
    for (const [uid, sending] of this.#sendings) {
      if (sending.service !== service) continue;
      problem ??= sending.problem;
      // Failed ones are tried again; of those that have gone there is nothing to remember.
      if (sending.hasFailed || !uids.has(uid)) this.#sendings.delete(uid);
    }
    for (const pod of pods) {
      const progress = progressOf(pod, Date.now(), 0);
      if (progress.kind !== "running" || isReady(pod) || this.#sendings.has(uidOf(pod)) || this.#stop.signal.aborted) continue;
      this.#sendings.set(uidOf(pod), this.#begin(service, bundle, progress.ip));
    }
    return problem;
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("the server is shutting down"));
    await Promise.all([...this.#sendings.values()].map(({ done }) => done));
  }

  #begin(service: string, { name, open }: ServiceBundle, host: string): Sending {
    const work = async () => {
      using limit = new TimedSignal(SEND_MS, this.#stop.signal);
      const { signal } = limit;
      const folder = await open();
      await using init = await connectInit({ kind: "tcp", host, port: INIT_PORT }, this.#key, signal);
      await sendFolder(init, folder, signal, { parent: BUNDLES, name });
    };
    const sending: Sending = {
      service,
      problem: null,
      hasFailed: false,
      done: work().catch((error: unknown) => {
        sending.hasFailed = true;
        sending.problem = `a pod did not receive its bundle: ${messageOf(error)}`;
      }),
    };
    return sending;
  }
}

function uidOf({ metadata: { uid = "" } }: Pod): string {
  return uid;
}

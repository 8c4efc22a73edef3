import { setTimeout } from "node:timers/promises";
import { isQuotaRefusal } from "../failures.ts";

export interface RoomOptions {
  /** Removes a pod that only waits; false if there is none. */
  readonly makeRoom: () => Promise<boolean>;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

/** The cluster counts the quota again after a pod has gone, which takes it a moment. Then another pod has to go. */
const COUNTED_MS = 3_000;
const PAUSE_MS = 100;

/** Creates the pod of a sandbox. While the quota of the namespace has no room for it, pods that only wait make room. */
export async function createWithRoom<T>(create: () => Promise<T>, { makeRoom, signal, now = Date.now }: RoomOptions): Promise<T> {
  for (let countedAt = 0; ; ) {
    try {
      return await create();
    } catch (error) {
      if (!isQuotaRefusal(error)) throw error;
      if (now() >= countedAt) {
        if (!(await makeRoom())) throw error;
        countedAt = now() + COUNTED_MS;
      }
    }
    await setTimeout(PAUSE_MS, undefined, { signal });
  }
}

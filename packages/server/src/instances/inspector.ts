import { catalogue, toolDescriptor } from "@aenv/contract";
import { z } from "zod";
import type { Metadata } from "../hub/environment-version.ts";
import { askBox, type BoxClients } from "./box-client.ts";
import type { Pool } from "./pool.ts";

export interface InspectorOptions {
  readonly pool: Pool;
  readonly clients: BoxClients;
  readonly startTimeoutMs: number;
}

/** Starts a bundle in a box of its own, asks it what it offers, and ends it. What fails here would fail for its users. */
export function inspector({ pool, clients, startTimeoutMs }: InspectorOptions): (folder: string) => Promise<Metadata> {
  return async (folder) => {
    const signal = AbortSignal.timeout(startTimeoutMs);
    const box = await pool.claim({ folder, digest: folder, variables: {}, mayBePrepared: false, warm: 0 }, signal);
    try {
      const answer = await askBox(clients, box.id, box.address, {
        method: "GET",
        path: "/env-instance",
        timeoutMs: startTimeoutMs,
        signal,
      });
      return offer.parse(answer);
    } finally {
      await box.destroy();
    }
  };
}

const offer = z.object({
  tools: z.array(toolDescriptor),
  catalogue,
  taskCount: z.number().int().nullable(),
  tasksProblem: z.string().nullable().default(null),
  keepsStateInModules: z.boolean(),
});

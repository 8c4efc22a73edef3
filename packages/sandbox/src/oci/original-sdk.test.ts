import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, ORIGINAL_SDK_PORT, originalSdkImage } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OciEngine } from "./engine.ts";
import { testBase } from "./testing/base.ts";
import { leftoversOf } from "./testing/leftovers.ts";

describeNeeding("mmdebstrap", "an image with the original Python SDK", () => {
  describeNeeding("skopeo", "that is read from an archive", () => {
    describeNeeding("runc", "in an oci sandbox", () => {
      let home: string;
      let image: string;
      beforeAll(async () => {
        image = `docker-archive:${await originalSdkImage()}`;
        home = mkdtempSync(join(tmpdir(), "aenv-original-"));
      }, 15 * 60_000);
      afterAll(() => rmSync(home, { recursive: true, force: true }));

      it("starts the image's own program and answers on its port", { timeout: 300_000 }, async () => {
        const engine = new OciEngine({ home, runtime: "runc", base: testBase });
        try {
          const listening = { kind: "port", port: ORIGINAL_SDK_PORT, healthPath: "/health" } as const;
          const spec = { id: "original", command: [], image, listening, variables: {}, labels: {}, startTimeoutMs: 240_000 };
          const sandbox = await engine.create(spec, AbortSignal.timeout(290_000));
          if (sandbox.address.kind !== "tcp") throw new Error("an oci sandbox has a TCP address");
          const url = `http://${sandbox.address.host}:${sandbox.address.port}`;
          const ask = async (path: string) => (await fetch(`${url}${path}`)).json();
          expect(await ask("/health")).toMatchObject({ success: true, data: { status: "success", details: { tool_count: 7 } } });
          expect(JSON.stringify(await ask("/functions/list"))).toContain("get_weather_func");
          await sandbox.destroy();
        } finally {
          for (const left of await engine.list()) await left.destroy();
          await engine.close();
        }
        expect(await leftoversOf(home)).toEqual([]);
      });
    });
  });
});

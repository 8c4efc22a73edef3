import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describeNeeding, pythonPath } from "@aenv/testing";
import { freePort, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT } from "./original.ts";

describeNeeding("python", "the original Python SDK's presign_url", () => {
  it.runIf(process.platform === "linux")("reaches HTTP and WebSocket on a port of a process sandbox", { timeout: 120_000 }, async () => {
    const host = freeLoopback();
    await using platform = await startPlatform({ flags: { host, controlPort: 8080, dataPort: ORIGINAL_PORT } });
    const [port, other] = [await freePort(), await freePort()];
    await publish(platform, projects.window, { ports: [port] });
    const { stdout } = await promisify(execFile)(
      pythonPath,
      [join(import.meta.dirname, "presign.py"), `http://${host}`, String(port), String(other)],
      { env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" }, timeout: 100_000 },
    );
    const failed = (message: unknown) => ({ raised: "EnvironmentError", message });
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
      without_data_plane: {
        url: expect.stringMatching(new RegExp(`^http://${host}:${ORIGINAL_PORT}/port/[\\w-]{32}$`)),
        posted: ["POST", "/healthz?a=1", `127.0.0.1:${port}`, "hello"],
        redirected: "/found",
        echoed: ["hello", true, "chat"],
        refused: failed(expect.stringMatching(/^presign_url failed: not supported on this engine \(process\): presign URL; /)),
        invalid: failed(expect.stringContaining("port")),
        too_short: failed(expect.stringContaining("expiration_time_in_minutes")),
        tool: failed(expect.stringContaining("enable_data_plane=False")),
        after: 404,
      },
      before_it_listens: { before: 502, listening: false, after: 200 },
    });
  });
});

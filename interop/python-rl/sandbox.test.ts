import { describeNeeding } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clientPath, runPython } from "./python.ts";

describeNeeding("python-rl", "the Python client", () => {
  describeNeeding("go", "with the sandbox of an instance", () => {
    let platform: Platform;
    beforeAll(async () => {
      platform = await startPlatform({ flags: { processCommands: true } });
      await publish(platform, projects.tally);
    });
    afterAll(() => platform?.close());

    it.each(["sync", "async"])("runs commands and accesses files (%s)", async (kind) => {
      expect(await runPython("use_sandbox.py", [platform.controlUrl, kind], { variables: { PYTHONPATH: clientPath } })).toEqual({
        command: { exit_code: 3, signal: null, timed_out: false, stdout: "in a\n", stderr: "", dropped_bytes: 0 },
        list: "$A",
        timeout: true,
        text: "grün!",
        mode: "0600",
        files: ["b.txt", "er"],
        missing: "file.not_found",
      });
    });
  });
});

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@aenv/benchmark";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { toJson } from "../dataset/row.ts";
import { byInstance, readPredictions } from "../runs/predictions.ts";
import { regradeRun } from "../runs/regrade.ts";
import { RunFolder } from "../runs/run-folder.ts";
import { makeRunReport, writeRunReport } from "../runs/run-report.ts";
import { makeSpec } from "../spec/spec.ts";
import { ATTEMPTS, RESET, REVERSE_CHECK } from "./attempts.ts";
import { type GradePatchOptions, gradePatch } from "./evaluate.ts";
import type { EvalSandbox } from "./sandbox.ts";
import { LocalSandbox } from "./testing/local-sandbox.ts";

const PATCH = `diff --git a/value b/value
--- a/value
+++ b/value
@@ -1 +1 @@
-1
+2
`;
const SCRIPT = `#!/bin/bash
set -uxo pipefail
cd /testbed
: '>>>>> Start Test Output'
./test.sh
: '>>>>> End Test Output'
git checkout -- test.sh
`;
const TEST =
  '#!/bin/bash\nif [ "$(cat value)" = 2 ]; then echo "PASSED value"; else echo "FAILED value"; exit 1; fi\necho "PASSED other"\n';

function specOf(changes: object = {}) {
  const row = {
    instance_id: "a__b-1",
    repo: "a/b",
    version: "1",
    image: "image",
    log_parser: "parse_log_pytest",
    eval_type: "pass_and_fail",
    eval_script: SCRIPT,
    FAIL_TO_PASS: ["value"],
    PASS_TO_PASS: ["other"],
  };
  return makeSpec(toJson({ ...row, ...changes }) as JsonObject);
}

/** A repository with a value that a test reads. */
function repository(value = "1\n") {
  const tree = temporaryTree({ "testbed/value": value, "testbed/test.sh": TEST, "tmp/x": "" });
  const git = (...args: string[]) => execFileSync("git", args, { cwd: join(tree.path, "testbed"), stdio: "ignore" });
  execFileSync("chmod", ["755", join(tree.path, "testbed/test.sh")]);
  git("init", "-q");
  git("add", "-A");
  git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "start");
  return tree;
}

async function grade(path: string, patch: string | null, options: Partial<GradePatchOptions> = {}) {
  const sandbox = new LocalSandbox(path);
  const now = () => new Date("2026-01-02T03:04:05.678Z");
  return { sandbox, ...(await gradePatch({ sandbox, spec: specOf(), patch, now, ...options })) };
}

describe("an instance", () => {
  it("is resolved by a patch that makes its tests pass", async () => {
    using tree = repository();
    const { grade: result, output, log, sandbox, error } = await grade(tree.path, PATCH);
    expect(error).toBeNull();
    expect(result?.report).toMatchObject({ resolved: true, patch_successfully_applied: true });
    expect(output).toContain(">>>>> Test Exit Code: 0\n");
    expect(log).toContain("2026-01-02 03:04:05,678 - INFO - >>>>> Applied Patch:\n");
    expect(sandbox.commands).toEqual([
      "git apply --verbose /tmp/patch.diff",
      "git -c core.fileMode=false diff",
      "/bin/bash /eval.sh",
      "git -c core.fileMode=false diff",
    ]);
  });

  it("is not resolved by a patch that changes nothing that matters", async () => {
    using tree = repository();
    const other = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
    const { grade: result } = await grade(tree.path, other);
    expect(result?.report.resolved).toBe(false);
    expect(result?.report.tests_status?.FAIL_TO_PASS.failure).toEqual(["value"]);
  });

  it("has an error instead of a report if the patch cannot be applied, after all attempts in order", async () => {
    using tree = repository("7\n");
    const { grade: result, error, output, log, sandbox } = await grade(tree.path, PATCH);
    expect([result, output]).toEqual([null, null]);
    expect(error).toMatch(/^>>>>> Patch Apply Failed:\n/);
    expect(log).toContain("ERROR - Error in evaluation for a__b-1");
    const [first, ...others] = ATTEMPTS;
    const wanted = [first ?? [], ...others.flatMap((attempt) => [RESET, attempt]), REVERSE_CHECK];
    expect(sandbox.commands).toEqual(wanted.map((command) => command.join(" ")));
  });

  it("accepts a patch that the repository already has", async () => {
    using tree = repository("2\n");
    const { grade: result, log } = await grade(tree.path, PATCH);
    expect(log).toContain(">>>>> Applied Patch: verified already applied");
    expect(result?.report.resolved).toBe(true);
  });

  it("has an error and the output so far if the tests take too long", async () => {
    using tree = repository();
    const spec = specOf({ eval_script: ": '>>>>> Start Test Output'\nsleep 100\n: '>>>>> End Test Output'\n" });
    const { grade: result, error, output } = await grade(tree.path, PATCH, { spec, timeoutSeconds: 1 });
    expect(result).toBeNull();
    expect(error).toBe("Test timed out after 1 seconds.");
    expect(output).toContain("Start Test Output");
    expect(output).toMatch(/\n\nTimeout error: 1 seconds exceeded\.$/);
  });

  it("has a log that says that the memory limit of the sandbox ended the tests", async () => {
    using tree = repository();
    const local = new LocalSandbox(tree.path);
    const sandbox: EvalSandbox = {
      exec: async (command, options) => ({ ...(await local.exec(command, options)), isOutOfMemory: command[0] === "/bin/bash" }),
      write: (path, bytes) => local.write(path, bytes),
    };
    const { log } = await gradePatch({ sandbox, spec: specOf(), patch: PATCH });
    expect(log).toContain("WARNING - the memory limit of the sandbox ended the tests");
  });

  it("gets the files that its tests need before they start", async () => {
    using tree = repository();
    const assets = { test_patch: [{ path: "data/a.bin", url: "https://example.com/a" }, { path: "b.bin" }, { url: "x" }], patch: [] };
    const spec = specOf({ image_assets: JSON.stringify(assets) });
    const {
      script,
      log,
      grade: result,
    } = await grade(tree.path, PATCH, {
      spec,
      fetchAsset: async ({ path }) => (path === "data/a.bin" ? new Uint8Array([1, 255]) : null),
    });
    expect(result?.report.resolved).toBe(true);
    expect(script).toContain("mkdir -p $(dirname data/a.bin) && cp /image_assets/data__a.bin data/a.bin\n: '>>>>> Start");
    expect(log).toContain("WARNING - the file b.bin is missing");
    expect([...readFileSync(join(tree.path, "testbed/data/a.bin"))]).toEqual([1, 255]);
  });

  it("replaces bytes of the output that are not UTF-8", async () => {
    using tree = repository();
    const spec = specOf({ eval_script: SCRIPT.replace("./test.sh", "./test.sh; printf '\\377\\n'") });
    const { output, grade: result } = await grade(tree.path, PATCH, { spec });
    expect(output).toContain("\ufffd\n");
    expect(result?.report.resolved).toBe(true);
  });

  it("throws what the sandbox throws", async () => {
    const broken: EvalSandbox = { exec: () => Promise.reject(new Error("sandbox is gone")), write: async () => {} };
    await expect(gradePatch({ sandbox: broken, spec: specOf(), patch: PATCH })).rejects.toThrow("sandbox is gone");
  });
});

describe("a run", () => {
  it("is kept in files, graded anew without running anything, and reported", async () => {
    using tree = repository();
    using files = temporaryTree({});
    const run = new RunFolder(files.path, "r1");
    const evaluation = await grade(tree.path, PATCH);
    run.keepInfo({ dataset: "lite", split: "test", taskRepo: null }, new Date("2026-01-02T03:04:05Z"));
    run.keep("org/model", "a__b-1", PATCH, evaluation);
    const folder = join(files.path, "logs/run_evaluation/r1");
    expect(readFileSync(join(folder, "run.json"), "utf8")).toBe(
      '{\n  "dataset": "lite",\n  "split": "test",\n  "task_repo": null,\n  "created_at": "2026-01-02T03:04:05+00:00"\n}\n',
    );
    const report = readFileSync(join(folder, "org__model/a__b-1/report.json"), "utf8");
    expect(JSON.parse(report)["a__b-1"].resolved).toBe(true);

    const line = JSON.stringify({ instance_id: "a__b-1", model_name_or_path: "org/model", model_patch: PATCH });
    const predictions = byInstance(readPredictions(line, "jsonl"));
    const harder = specOf({ PASS_TO_PASS: ["other", "third"] });
    expect(regradeRun(run, [harder, { ...harder, instanceId: "a__b-2" }], predictions)).toEqual([
      { instanceId: "a__b-1", isResolved: false, error: null },
    ]);
    const unknown = specOf({ log_parser: "x" });
    expect(regradeRun(run, [unknown], predictions)[0]?.error).toContain("no log parser 'x'");

    const input = { instanceIds: ["a__b-1", "a__b-2"], predictions, read: run.read };
    const summary = JSON.parse(writeRunReport(makeRunReport(input)));
    expect(summary).toMatchObject({ total_instances: 2, unresolved_ids: ["a__b-1"], incomplete_ids: ["a__b-2"], schema_version: 2 });
    expect(regradeRun(run, [specOf()], predictions)[0]?.isResolved).toBe(true);
    expect(readFileSync(join(folder, "org__model/a__b-1/report.json"), "utf8")).toBe(report);
  });
});

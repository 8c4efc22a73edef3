import { describe, expect, it } from "vitest";
import type { SandboxSpec } from "../engine/engine.ts";
import { markerOf, programOf } from "./program.ts";
import { SandboxFolder } from "./sandbox-folder.ts";

const folder = new SandboxFolder("/home/ada/sandboxes/a=b");
const options = { path: "/bin", nodeOptions: ["--no-warnings"] };

function run(more: Partial<SandboxSpec>) {
  const spec = { id: "a", command: ["node", "main.js"], variables: {}, labels: {}, startTimeoutMs: 1, ...more };
  return programOf(spec, folder, { socket: "/s", secret: "s3cret" }, options);
}

describe("the program of a spec", () => {
  it("is the command and where to listen", () => {
    expect(run({ command: ["python3", "main.py"] })).toMatchObject({ file: "python3", args: ["main.py", "--socket", "/s"] });
  });

  it("limits the heap of Node, and passes no flag to other programs", () => {
    expect(run({ resources: { memoryMb: 400 } }).args).toEqual(["--max-old-space-size=300", "--no-warnings", "main.js", "--socket", "/s"]);
    expect(run({ command: [process.execPath], resources: { memoryMb: 1 } }).args[0]).toBe("--max-old-space-size=16");
    expect(run({ command: ["python3"], resources: { memoryMb: 400 } }).args).toEqual(["--socket", "/s"]);
  });

  it("limits the CPU time with ulimit", () => {
    const { file, args } = run({ resources: { cpuSeconds: 1.5 } });
    expect(file).toBe("/bin/sh");
    expect(args[1]).toContain("ulimit -S -t 2");
    expect(args.slice(2)).toEqual(["sh", "node", "--no-warnings", "main.js", "--socket", "/s"]);
  });

  it("always has the sandbox's marker, whatever the spec says", () => {
    const { variables } = run({ variables: { AENV_SANDBOX: "forged", HOME: "/elsewhere" } });
    expect(variables).toMatchObject({ AENV_SANDBOX: `${folder.path}:s3cret`, HOME: "/elsewhere", PATH: "/bin" });
    expect(markerOf(folder, { secret: "s3cret" })).toBe(`AENV_SANDBOX=${folder.path}:s3cret`);
  });
});

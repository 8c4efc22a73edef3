import type { Sandbox } from "@aenv/sandbox";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { type BenchImage, PROGRAM } from "./image.ts";
import { Machine, millisecondsOf, runProgram } from "./machine.ts";
import type { Scale } from "./scale.ts";

const { signal } = new AbortController();

/** Copies of a sandbox that goes on meanwhile. */
export async function measureForks(report: Report, image: BenchImage, scale: Scale): Promise<void> {
  await using machine = await Machine.open({ base: image.files });
  for (const [fidelity, measure] of [
    ["files", measureFiles],
    ["memory", measureMemory],
  ] as const) {
    if (machine.engine.snapshots?.fidelities.includes(fidelity)) await measure(report, machine, scale);
    else report.skip(`snapshots of ${fidelity}`, "the oci engine takes none");
  }
}

async function measureFiles(report: Report, machine: Machine, { rounds, files }: Scale): Promise<void> {
  report.progress("forks of files");
  const parent = await machine.create({ runtime: "runc" });
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // Changed again: a snapshot may take the changes away from the sandbox. Until the end of the program: as long as it runs, files are copied.
    await using init = await machine.connect(parent);
    const { exitCode } = await init.run({ argv: [PROGRAM, "files", String(files)] });
    if (exitCode !== 0) throw new Error(`the program that changes files ended with ${exitCode}`);
    let id = "";
    times.push(
      await millisecondsOf(async () => {
        id = (await parent.snapshots?.take("files", signal))?.id ?? "";
      }),
    );
    await machine.engine.snapshots?.remove(id);
  }
  report.add({
    name: `snapshot of files, ${files * 0.1} MB changed in ${files} files, only the init runs, p50`,
    value: quantile(times, 0.5),
    unit: "ms",
    aim: { of: "value", is: "at most", limit: 50 },
  });
  await parent.destroy();
}

async function measureMemory(report: Report, machine: Machine, { memoryMb, forks }: Scale): Promise<void> {
  report.progress("forks of memory");
  const parent = await machine.create({ runtime: "runsc" });
  await runIn(machine, parent, ["memory", String(memoryMb)]);
  let id = "";
  const stored = await millisecondsOf(async () => {
    id = (await parent.snapshots?.take("memory", signal))?.id ?? "";
  });
  const all = await millisecondsOf(() =>
    Promise.all(Array.from({ length: forks }, () => machine.create({ runtime: "runsc", snapshot: id }))),
  );
  report.add({ name: `snapshot of memory, a process of ${memoryMb} MB`, value: stored, unit: "ms" });
  report.add({ name: `${forks} forks from it at once, until the last can run commands`, value: all, unit: "ms" });
  report.add({ name: `memory fork x ${forks}, in total per fork`, value: (stored + all) / forks, unit: "ms" });
}

async function runIn(machine: Machine, sandbox: Sandbox, args: readonly string[]): Promise<void> {
  const init = await machine.connect(sandbox);
  await runProgram(init, args);
  await init.close();
}

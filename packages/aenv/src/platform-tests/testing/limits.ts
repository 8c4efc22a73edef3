import { expect } from "vitest";
import { type Platform, projects, publish } from "../platform.ts";

/** Prints the limits of memory, of processors and of the disk that the kernel has for a sandbox with runc, in the units of the settings. */
const SCRIPT = `
  const first = (...names) => names.map((name) => "/sys/fs/cgroup/" + name).filter(fs.existsSync).map((name) => fs.readFileSync(name, "utf8").trim())[0];
  const [quota, period] = (first("cpu.max") ?? first("cpu/cpu.cfs_quota_us", "cpu,cpuacct/cpu.cfs_quota_us") + " 100000").split(" ");
  const { blocks, bsize } = fs.statfsSync("/");
  console.log(JSON.stringify({ memoryMb: first("memory.max", "memory/memory.limit_in_bytes") / 2 ** 20, cpus: quota / period, diskMb: blocks * bsize / 2 ** 20 }));
`;

export interface SeenLimits {
  readonly memoryMb: number;
  readonly cpus: number;
  readonly diskMb: number;
}

/** What an instance of an environment with these fields of `deployConfig` may use. */
export async function seenLimits(
  platform: Platform,
  deployConfig: Readonly<Record<string, unknown>>,
  version = "1.0.0",
): Promise<SeenLimits> {
  const { id } = await platform.create(await publish(platform, projects.echo, { version, deployConfig }));
  const ran = await platform.demand("POST", `/env-instance/${id}/exec`, { command: ["node", "-e", SCRIPT], wait: true });
  const { stdout, stderr } = ran as { stdout: string; stderr: string };
  expect(stderr).toBe("");
  return JSON.parse(stdout) as SeenLimits;
}

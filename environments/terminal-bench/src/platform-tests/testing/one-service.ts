import type { Environment } from "@aenv/sdk";
import { expect } from "vitest";

/** What the sandbox of the fixture `one-service` is, which its compose file says; on every engine the same. */
export async function expectOneService(env: Environment): Promise<void> {
  const lines = async (command: string) => {
    const { text } = await env.callTool("bash", { command });
    return text.split("\n").filter((line) => line !== "" && !line.startsWith("["));
  };
  // The program of the service runs beside the agent, with the service's variables.
  expect(await lines("cat /work/started; echo $WORD $TEST_DIR; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^infinity$'")).toEqual([
    "begun",
    "begun /tests",
    "1",
  ]);
  expect(await lines("pwd")).toEqual(["/srv/in/here"]);
  expect(await lines("grep -E 'city|docker|client' /etc/hosts | tr '\\t' ' ' | sort")).toEqual([
    "127.0.0.1 client",
    "192.0.2.7 city.example",
  ]);
  // The tests are not among the files of the task that the agent sees.
  expect(await lines("ls /app")).toEqual(["Dockerfile", "data", "settings.txt"]);
  expect(await lines("cat /srv/data/number.txt /etc/city.conf")).toEqual(["17", "city=Lisbon"]);
  const mounted = await lines("grep -E ' /(scratch|tools) ' /proc/mounts");
  const options = (path: string) =>
    mounted
      .find((line) => line.includes(` ${path} `))
      ?.split(" ")[3]
      ?.split(",") ?? [];
  expect(options("/scratch")).toEqual(expect.arrayContaining(["noexec", "size=8192k", "mode=777"]));
  expect(options("/tools")).toEqual(expect.arrayContaining(["size=131072k"]));
  expect(options("/tools")).not.toContain("noexec");
  const full = await lines("head -c 9000000 /dev/zero > /scratch/x; echo $?; rm /scratch/x");
  expect(full.at(-1)).toBe("1");
  const limit = async (name: string) => (await lines(`cat /sys/fs/cgroup/${name} /sys/fs/cgroup/*/${name} 2> /dev/null`))[0];
  expect((await limit("pids.max")) ?? (await limit("pids/pids.max"))).toBe("64");
  expect((await limit("memory.max")) ?? (await limit("memory.limit_in_bytes"))).toBe(String(256 * 2 ** 20));
}

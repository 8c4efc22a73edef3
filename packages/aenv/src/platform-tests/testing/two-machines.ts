import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

export const PORT = 8443;
/** The address of the other machine, of a network that is reserved for examples. */
export const OUTSIDE = "203.0.113.2";

let count = 0;

/** Two network namespaces that are connected, as machines are, and a program in the other one that greets each connection. */
export async function startTwoMachines(): Promise<AsyncDisposable & { readonly machine: string }> {
  const id = `aep${process.pid.toString(36)}${(count++).toString(36)}`;
  const [machine, outside] = [`${id}m`, `${id}o`];
  const remove = () => {
    for (const name of [machine, outside]) spawnSync("ip", ["netns", "del", name]);
  };
  try {
    ip([], [`netns add ${machine}`, `netns add ${outside}`]);
    const connect = [`link add wan type veth peer name wan netns ${outside}`, "addr add 203.0.113.1/24 dev wan", "link set wan up"];
    ip(["-n", machine], ["link set lo up", ...connect, `route add default via ${OUTSIDE}`]);
    ip(["-n", outside], ["link set lo up", "link set wan up", `addr add ${OUTSIDE}/24 dev wan`]);
    const greet = `net.createServer((socket) => socket.on("error", () => {}).end("hello")).listen(${PORT}, () => console.log("listening"))`;
    const program = spawn("nsenter", [`--net=/run/netns/${outside}`, process.execPath, "-e", greet], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(program.stdout, "data");
    return {
      machine,
      [Symbol.asyncDispose]: async () => {
        program.kill("SIGKILL");
        await once(program, "exit");
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function ip(args: readonly string[], lines: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", [...args, "-batch", "-"], { encoding: "utf8", input: lines.join("\n") });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

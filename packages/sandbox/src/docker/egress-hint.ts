import type { InitConnection } from "../init/connection.ts";
import type { DockerRecord } from "./record.ts";

/**
 * Which name server containers ask whose packets are filtered. No machine has this address: all their queries go to the name server of the
 * platform. It is known before their network is, and Docker's own name server, which containers of Docker ask first, asks nobody else.
 */
export const NAME_SERVER = "192.0.2.53";

/** Not in `/etc/resolv.conf`: the daemon does not give a name server to a container whose file has been changed. */
const HOSTS = "/etc/hosts";
const HINT = `
# The platform restricts the outgoing connections of this sandbox by its egress policy. With the policy none, the default, it has no network:
# names do not resolve, and connections fail with "Network is unreachable". With other policies, names that the policy does not allow do not
# exist, and connections to other addresses are refused. The environment sets deployConfig.egress in config.json.
`;

/** Says in the sandbox why it does not reach something. An image may have no such file, which is no reason not to start. */
export async function writeEgressHint(init: InitConnection, { runtime, network }: DockerRecord): Promise<void> {
  const append = (path: string, text: string) =>
    init.files.write({ path, content: Buffer.from(text), append: true }).catch(() => undefined);
  await append(HOSTS, HINT);
  // Docker's own name server, which is a rule of the machine's kernel, does not answer in the network of gVisor.
  if (runtime === "runsc" && network !== undefined) await append("/etc/resolv.conf", `nameserver ${NAME_SERVER}\n`);
}

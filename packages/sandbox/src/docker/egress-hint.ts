import type { InitConnection } from "../init/connection.ts";

/** Not in `/etc/resolv.conf`: the daemon does not give a name server to a container whose file has been changed. */
const FILE = "/etc/hosts";
const HINT = `
# The platform restricts the outgoing connections of this sandbox by its egress policy. With the policy none, the default, it has no network:
# names do not resolve, and connections fail with "Network is unreachable". The environment sets deployConfig.egress in config.json.
`;

/** Says in the sandbox why it reaches nothing. An image may have no such file, which is no reason not to start. */
export async function writeEgressHint(init: InitConnection): Promise<void> {
  await init.files.write({ path: FILE, content: Buffer.from(HINT), append: true }).catch(() => undefined);
}

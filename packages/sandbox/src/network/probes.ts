import { formatIpv4Network } from "@aenv/contract";
import { attempt, isRootOnLinux, needsRoot, type ProbeResult, probeProgram } from "../host/probe.ts";
import { findSubnet } from "./home.ts";

/** Connects two network interfaces and adds a firewall table, in a network of its own that ends with the command. */
export async function probeNetwork(): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  for (const program of ["ip", "nft"]) {
    const found = await probeProgram(program, ["-V"]);
    if (!found.ok) return found;
  }
  const script = "ip link add probe0 type veth peer name probe1 && nft add table inet probe";
  const ran = await probeProgram("unshare", ["--net", "sh", "-c", script]);
  return ran.ok ? { ok: true, detail: "interfaces and firewall rules can be created" } : ran;
}

/** Looks for the subnet that sandboxes of the home would get. */
export async function probeSubnet(home: string, wanted?: string): Promise<ProbeResult> {
  if (!isRootOnLinux()) return needsRoot();
  return attempt(async () => `${formatIpv4Network(await findSubnet(home, wanted))} is free`);
}

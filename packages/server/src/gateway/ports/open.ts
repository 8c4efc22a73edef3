import type { ServerConfig } from "../../config/config.ts";
import type { Lifecycle } from "../../lifecycle/lifecycle.ts";
import type { Slots } from "../../slots/slots.ts";
import type { Store } from "../../stores/store.ts";
import { PortClients } from "./clients.ts";
import { LinkHosts } from "./link-hosts.ts";
import { PortLinks } from "./links.ts";
import { Presign, type PresignOptions } from "./presign.ts";

export interface OpenPortsOptions extends Omit<PresignOptions, "links"> {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly slots: Slots;
  readonly lifecycle: Lifecycle;
  readonly now: () => Date;
}

/** Puts together what gives clients access to ports inside sandboxes. */
export function openPorts({ config, store, slots, lifecycle, now, ...rest }: OpenPortsOptions) {
  const links = new PortLinks(store, now);
  const ports = new PortClients((sandboxId) => slots.find(sandboxId));
  lifecycle.addSweep(() => links.collect());
  lifecycle.on("close", () => ports.close());
  return { links, linkHosts: new LinkHosts(config), ports, presign: new Presign({ ...rest, links }) };
}

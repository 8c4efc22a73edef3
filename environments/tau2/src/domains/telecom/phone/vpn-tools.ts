import { attributeError } from "@aenv/benchmark";
import { dump } from "../../../core/database/merge.ts";
import { toolsOf } from "../../../core/tools/tool.ts";
import { repr } from "../../../python/repr.ts";
import { Dict } from "../../../python/values/values.ts";
import { PerformanceLevel, type PhoneSide, VpnDetails } from "./model.ts";
import { deviceOf } from "./network.ts";
import { withStatusBar } from "./status-bar.ts";
import { dropVpn } from "./switches.ts";

const { read, write, helper } = toolsOf<PhoneSide>();

/** The only profile of a phone. A connection uses the same object, so breaking the connection breaks the profile. */
export const freshMemory = (): Dict<VpnDetails> =>
  Dict.of({
    vpnProfile: VpnDetails.create({
      server_address: "192.168.1.1",
      protocol: "OpenVPN",
      server_performance: PerformanceLevel.EXCELLENT,
    }),
  });

export const checkVpnStatus = read({
  name: "check_vpn_status",
  summary: "See whether your phone uses a VPN, and which one.",
  parameters: {},
  run(_, { db }) {
    const { vpn_connected, vpn_details, vpn_enabled_setting } = deviceOf(db);
    if (vpn_connected && vpn_details !== null) return `VPN is ON and connected. Details: ${repr(dump(vpn_details))}`;
    if (vpn_connected) return "VPN is ON and connected (no specific details available).";
    return vpn_enabled_setting ? "VPN is turned ON in settings, but currently not connected." : "VPN is turned OFF.";
  },
});

export const connectVpn = write({
  name: "connect_vpn",
  summary: "Connect your phone to its VPN.",
  parameters: {},
  run: (_, side) => (connect(side) ? withStatusBar("VPN connected successfully.", side.db) : "VPN already connected."),
});

export const disconnectVpn = write({
  name: "disconnect_vpn",
  summary: "End your phone's VPN connection.",
  parameters: {},
  run(_, { db }) {
    const device = deviceOf(db);
    if (!device.vpn_connected) return withStatusBar("No active VPN connection to disconnect.", db);
    dropVpn(device);
    return withStatusBar("VPN disconnected successfully.", db);
  },
});

export const vpnHelpers = [
  helper({
    name: "break_vpn",
    parameters: [],
    run(_, side) {
      connect(side);
      const { vpn_details } = deviceOf(side.db);
      if (vpn_details === null) throw attributeError("NoneType", "server_performance");
      vpn_details.server_performance = PerformanceLevel.POOR;
      return "VPN connection broken.";
    },
  }),
];

/** False if it was already connected. */
function connect({ db, memory }: PhoneSide): boolean {
  const device = deviceOf(db);
  if (device.vpn_connected) return false;
  device.vpn_connected = true;
  device.vpn_details = memory.get("vpnProfile") ?? null;
  return true;
}

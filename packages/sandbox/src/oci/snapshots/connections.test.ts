import { describe, expect, it } from "vitest";
import { describeCut, outsideConnections } from "./connections.ts";

const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const row = (local: string, remote: string, state: string) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000 0 0 1 1 0`;

describe("connections of a sandbox to the outside", () => {
  it("are those that are open or half open or are being opened, to other addresses, and not the platform's own, which are also those to ports of the sandbox", () => {
    const table = [
      header,
      row("0200000A:9000", "0700000A:01BB", "01"),
      row("0200000A:9001", "0700000A:01BB", "01"),
      row("0200000A:9002", "0800000A:0050", "06"),
      row("0200000A:9006", "0B00000A:0050", "02"),
      row("0200000A:9007", "0C00000A:0050", "08"),
      row("0100007F:1F90", "0100007F:9003", "01"),
      row("0200000A:0001", "0100000A:9004", "01"),
      row("00000000:1F90", "00000000:0000", "0A"),
      row("0200000A:1F90", "0100000A:9005", "01"),
      "damaged",
    ].join("\n");
    expect(outsideConnections([table], new Set([1]))).toEqual(["10.0.0.11:80", "10.0.0.12:80", "10.0.0.7:443"]);
  });

  it("are also those of sockets for IPv6, which have IPv4 addresses too", () => {
    const mapped = (address: string) => `0000000000000000FFFF0000${address}`;
    const table = [
      header,
      row(`${mapped("0200000A")}:9000`, `${mapped("0700000A")}:01BB`, "01"),
      row(`${mapped("0200000A")}:9001`, `${mapped("0900000A")}:0050`, "01"),
      row(`${mapped("0200000A")}:0001`, `${mapped("0100000A")}:9004`, "01"),
      row(`${mapped("0100007F")}:1F90`, `${mapped("0100007F")}:9003`, "01"),
      row("00000000000000000000000001000000:1F90", "00000000000000000000000001000000:9003", "01"),
      row("000000FD000000000000000002000000:9005", "000000FD000000000000000001000000:01BB", "01"),
      row("00000000000000000000000000000000:1F90", "00000000000000000000000000000000:0000", "0A"),
      row(`${mapped("0200000A")}:1F90`, `${mapped("0100000A")}:9006`, "01"),
    ].join("\n");
    const other = [header, row("0200000A:9000", "0700000A:01BB", "01")].join("\n");
    expect(outsideConnections([other, table], new Set([1]))).toEqual(["10.0.0.7:443", "10.0.0.9:80", "[fd00::1]:443"]);
  });

  it("are named in the log of a copy, which does not have them", () => {
    expect(describeCut(["10.0.0.7:443", "10.0.0.8:80"])).toContain("connections to 10.0.0.7:443, 10.0.0.8:80 were cut");
    expect(describeCut([])).toBeNull();
  });
});

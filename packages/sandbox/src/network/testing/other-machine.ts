import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";

const SERVER = `
const { createServer } = require("node:net");
const servers = [(socket) => socket, (socket) => socket.end()].map((use) =>
  createServer({ allowHalfOpen: true }, (socket) => use(socket.on("error", () => undefined).resume())).listen(0),
);
const udp = require("node:dgram").createSocket("udp4");
udp.on("message", (message, { port, address }) => udp.send(message, port, address));
udp.bind(0, () => console.log(...[...servers, udp].map((one) => one.address().port)));
`;

/** A network namespace that is another machine for sandboxes of this one, with a server in it. */
export class OtherMachine implements AsyncDisposable {
  readonly address: string;
  /** Connections to it stay open. */
  readonly port: number;
  /** It sends nothing on connections to it, and says so. */
  readonly silentPort: number;
  /** It answers datagrams. */
  readonly udpPort: number;
  readonly #name: string;
  readonly #server: ChildProcess;

  static async start(): Promise<OtherMachine> {
    const name = `aeo${process.pid.toString(36)}${randomInt(36 ** 3).toString(36)}`;
    const network = `10.${randomInt(200, 250)}.${randomInt(256)}.${randomInt(64) * 4}`.split(".").map(Number);
    const addressOf = (host: number) => [...network.slice(0, 3), (network[3] ?? 0) + host].join(".");
    const ip = (...args: string[]) => {
      const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
      if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
    };
    ip("netns", "add", name);
    try {
      ip("link", "add", name, "type", "veth", "peer", "name", "wan", "netns", name);
      ip("addr", "add", `${addressOf(1)}/30`, "dev", name);
      ip("link", "set", name, "up");
      ip("-n", name, "addr", "add", `${addressOf(2)}/30`, "dev", "wan");
      ip("-n", name, "link", "set", "wan", "up");
      const server = spawn("ip", ["netns", "exec", name, process.execPath, "-e", SERVER], { stdio: ["ignore", "pipe", "inherit"] });
      const [line] = (await once(server.stdout, "data")) as [Buffer];
      return new OtherMachine(name, addressOf(2), server, line.toString().trim().split(" ").map(Number));
    } catch (error) {
      spawnSync("ip", ["netns", "del", name]);
      throw error;
    }
  }

  private constructor(name: string, address: string, server: ChildProcess, ports: readonly number[]) {
    this.#name = name;
    this.address = address;
    this.#server = server;
    [this.port = 0, this.silentPort = 0, this.udpPort = 0] = ports;
  }

  /** The interface of this machine goes with the namespace. */
  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#server, "exit");
    this.#server.kill("SIGKILL");
    await exited;
    spawnSync("ip", ["netns", "del", this.#name]);
  }
}

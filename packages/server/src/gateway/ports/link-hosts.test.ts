import { describe, expect, it } from "vitest";
import { LinkHosts } from "./link-hosts.ts";

const token = "0123456789abcdef0123456789abcdef";
const local = { linkUrl: null, publicUrl: null };
const domain = { linkUrl: "https://*.links.example:8443/", publicUrl: "https://data.example" };

describe("the host of a link", () => {
  it("is below localhost for a client that uses loopback", () => {
    for (const [host, url] of [
      ["localhost:8081", `http://${token}.localhost:8081`],
      ["127.0.0.1:9000", `http://${token}.localhost:9000`],
      ["[::1]", `http://${token}.localhost`],
    ]) {
      expect(new LinkHosts(local).urlOf(token, host)).toBe(url);
      expect(new LinkHosts({ ...local, publicUrl: "http://localhost:9000" }).urlOf(token, host)).toBe(url);
    }
  });

  it("is below the domain of the operator, if there is one", () => {
    expect(new LinkHosts(domain).urlOf(token, "data.example")).toBe(`https://${token}.links.example:8443`);
  });

  it("is missing where a client could not resolve it, and for a token that is no name of a host", () => {
    for (const host of [undefined, "10.0.0.5:8081", "data.example", "localhost.evil.example"])
      expect(new LinkHosts(local).urlOf(token, host)).toBeNull();
    expect(new LinkHosts({ ...local, publicUrl: "https://data.example" }).urlOf(token, "127.0.0.1:8081")).toBeNull();
    expect(new LinkHosts(local).urlOf("A_bcdef0123456789abcdef012345678", "localhost:8081")).toBeNull();
  });

  it("is recognized in upper and lower case, below these domains only, whatever the request before had", () => {
    const hosts = new LinkHosts(domain);
    const others = [
      "localhost:8081",
      token,
      `${token}.evil.example`,
      `x${token}.localhost`,
      `x.${token}.localhost`,
      `${token}.localhost.`,
      undefined,
    ];
    for (const host of [
      `${token}.localhost:8081`,
      `${token.toUpperCase()}.LOCALHOST`,
      `${token}.links.example`,
      `${token}.links.example:8443`,
    ]) {
      expect(hosts.tokenIn(host)).toBe(token);
      for (const other of others) expect(hosts.tokenIn(other)).toBeNull();
    }
    expect(new LinkHosts(local).tokenIn(`${token}.links.example`)).toBeNull();
  });
});

import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { accessInCluster, parseKubeconfig, readKubeconfig } from "./access.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

function config(user: object, more: { cluster?: object; context?: object } = {}): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [
      { name: "here", context: { cluster: "c", user: "u", ...more.context } },
      { name: "there", context: { cluster: "d", user: "u" } },
    ],
    clusters: [
      { name: "c", cluster: { server: "https://10.0.0.1:6443/", "certificate-authority-data": base64("authority"), ...more.cluster } },
      { name: "d", cluster: { server: "https://example.com/clusters/d" } },
    ],
    users: [{ name: "u", user }],
  });
}

const place = { path: "/home/ada/.kube/config" };

describe("a kubeconfig", () => {
  it("with a certificate names the server, the authority, the certificate and its key", () => {
    const user = { "client-certificate-data": base64("certificate"), "client-key-data": base64("key") };
    expect(parseKubeconfig(config(user, { context: { namespace: "shop" } }), place)).toEqual({
      server: "https://10.0.0.1:6443",
      ca: "authority",
      certificate: "certificate",
      key: "key",
      namespace: "shop",
    });
  });

  it("with a token names the token, also of another context", () => {
    expect(parseKubeconfig(config({ token: "t" }), { ...place, context: "there" })).toEqual({
      server: "https://example.com/clusters/d",
      token: "t",
    });
  });

  it("may name files beside it", () => {
    using tree = temporaryTree({ "ca.pem": "authority", token: "t", config: "" });
    const text = config(
      { tokenFile: "token" },
      { cluster: { "certificate-authority-data": undefined, "certificate-authority": "ca.pem" } },
    );
    const access = parseKubeconfig(text, { path: join(tree.path, "config") });
    expect(access).toMatchObject({ ca: "authority", tokenFile: join(tree.path, "token") });
  });

  it.each([
    ["a program for credentials", config({ exec: { command: "aws" } }), /'exec' of user 'u'.*not run here.*service account/],
    ["an old provider of credentials", config({ "auth-provider": { name: "gcp" } }), /'auth-provider' of user 'u'/],
    ["a password", config({ username: "ada", password: "x" }), /no longer accepts/],
    ["a certificate without its key", config({ "client-certificate-data": base64("c") }), /without its key/],
    ["a file that does not exist", config({ "client-certificate": "none.pem", "client-key": "none.key" }), /none\.pem/],
    ["no current context", "clusters: []", /no current-context/],
    ["an unknown cluster", config({}, { context: { cluster: "x" } }), /no cluster 'x'/],
    ["no server", config({}, { cluster: { server: "" } }), /no valid server for cluster 'c'/],
    ["text that is not YAML", "a: [", /is not YAML/],
    ["no object", "- 1", /not a kubeconfig/],
  ])("with %s is refused with what to do", (_, text, message) => {
    expect(() => parseKubeconfig(text, place)).toThrow(
      expect.objectContaining({ code: "request.invalid", message: expect.stringMatching(message) }),
    );
  });

  it("that does not exist is refused by its path", () => {
    expect(() => readKubeconfig("/nowhere/config")).toThrow(/\/nowhere\/config cannot be read/);
  });
});

it("a pod's account is read from its files", () => {
  using tree = temporaryTree({ "ca.crt": "authority", token: "t", namespace: "aenv\n" });
  expect(accessInCluster("[fd00::1]:443", tree.path)).toEqual({
    server: "https://[fd00::1]:443",
    ca: "authority",
    tokenFile: join(tree.path, "token"),
    namespace: "aenv",
  });
  expect(() => accessInCluster("10.0.0.1:443", join(tree.path, "none"))).toThrow(/account of this pod cannot be read/);
});

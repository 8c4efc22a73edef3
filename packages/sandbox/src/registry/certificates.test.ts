import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { tlsMaterial } from "./certificates.ts";
import { CERTIFICATE } from "./fixtures/server.ts";

const certificate = readFileSync(CERTIFICATE, "utf8");

describe("what the server trusts as a client of registries", () => {
  it("is the operator's file beside the authorities of the system, and only the operator's files if both variables are set", () => {
    using home = temporaryTree({ "folder/one.pem": certificate, "folder/readme": "text" });
    const all = tlsMaterial("a.test", { SSL_CERT_FILE: CERTIFICATE }, []).ca;
    expect(all[0]).toBe(certificate);
    expect(all.length).toBeGreaterThan(1);
    expect(tlsMaterial("a.test", { SSL_CERT_FILE: CERTIFICATE, SSL_CERT_DIR: join(home.path, "folder") }, []).ca).toEqual([
      certificate,
      certificate,
    ]);
    expect(tlsMaterial("a.test", {}, []).ca.length).toBeGreaterThan(0);
  });

  it("has the certificates and the key of one registry, as container tools store them", () => {
    const files = { "ca.crt": certificate, "client.cert": "shown", "client.key": "kept", "other.cert": "without a key" };
    using home = temporaryTree(Object.fromEntries(Object.entries(files).map(([name, text]) => [`certs.d/a.test:5000/${name}`, text])));
    const folders = [join(home.path, "none"), join(home.path, "certs.d")];
    expect(tlsMaterial("a.test:5000", {}, folders)).toMatchObject({ cert: "shown", key: "kept" });
    expect(tlsMaterial("a.test:5000", {}, folders).ca).toContain(certificate);
    expect(tlsMaterial("a.test", {}, folders).ca).not.toContain(certificate);
  });
});

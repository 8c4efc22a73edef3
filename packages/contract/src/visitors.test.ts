import { describe, expect, it } from "vitest";
import { visitorRule } from "./visitors.ts";

describe("a server on loopback", () => {
  it("answers to loopback's names and the ones it is told, whatever came before", () => {
    const rule = visitorRule("127.0.0.1", ["lab.example"]);
    const refused = [undefined, "", "evil.example", "evil.example:80", "localhost.evil.example", "lab.example.evil"];
    for (const host of refused) expect(() => rule.demand({ host })).toThrow(/does not answer to Host/);
    for (const known of ["localhost:8081", "127.0.0.1", "[::1]:9", "lab.example"]) {
      rule.demand({ host: known });
      for (const host of refused) expect(() => rule.demand({ host })).toThrow(/does not answer to Host/);
      expect(() => rule.demand({ host: known, origin: "http://evil.example" })).toThrow(/does not answer to Origin/);
      rule.demand({ host: known, origin: "http://localhost:3000" });
    }
  });
});

describe("a server beyond loopback", () => {
  it("has names that it cannot know", () => {
    visitorRule("0.0.0.0", []).demand({ host: "anything.example" });
  });
});

import { describe, expect, it, vi } from "vitest";
import { readSettings } from "./settings.ts";

describe("readSettings", () => {
  it("reads the three variables that the SDK knows", () => {
    const variables = { AENV_API_KEY: "k", AENV_SYSTEM_URL: "http://x", DUMMY_INSTANCE_IP: "localhost", OTHER: "y" };
    expect(readSettings(variables)).toEqual({ apiKey: "k", systemUrl: "http://x", dummyInstanceIp: "localhost" });
  });

  it("takes an empty variable for an absent one", () => {
    expect(readSettings({ AENV_API_KEY: "", DUMMY_INSTANCE_IP: "" })).toEqual({});
  });

  it("finds nothing where there is no process", () => {
    vi.stubGlobal("process", undefined);
    try {
      expect(readSettings()).toEqual({});
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

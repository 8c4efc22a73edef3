import { describe, expect, it } from "vitest";
import { Environment } from "../../core/environment.ts";
import { Toolkit } from "../../core/tools/toolkit.ts";
import { Dict, float, type PyValue } from "../../python/values/values.ts";
import { telecomTools } from "./agent-tools.ts";
import { TelecomDb } from "./model.ts";
import { TelecomUserDb } from "./phone/model.ts";
import { sync } from "./sync.ts";
import { telecomUserTools } from "./user-tools.ts";

const NUMBER = "555-0100";

/** A carrier with one customer, who has one line and no bill. */
function open(): Environment {
  const db = TelecomDb.create({
    plans: [
      Dict.of<PyValue>({ plan_id: "P1", name: "Small", data_limit_gb: 5, price_per_month: 20, data_refueling_price_per_gb: float(1.5) }),
    ],
    customers: [
      Dict.of<PyValue>({
        customer_id: "C1",
        full_name: "Ada Doe",
        date_of_birth: "1990-01-02",
        email: "ada@example.org",
        phone_number: NUMBER,
        address: Dict.of<PyValue>({ street: "1 Elm", city: "Springfield", state: "IL", zip_code: "62701" }),
        line_ids: ["L1"],
      }),
    ],
    lines: [Dict.of<PyValue>({ line_id: "L1", phone_number: NUMBER, status: "Active", plan_id: "P1", device_id: "D1" })],
    devices: [Dict.of<PyValue>({ device_id: "D1", device_type: "phone", model: "Brick 3", is_esim_capable: false })],
  });
  const environment = new Environment({
    domainName: "telecom",
    policy: "",
    tools: new Toolkit(telecomTools, db),
    userTools: new Toolkit(telecomUserTools, TelecomUserDb.create({})),
    sync,
  });
  run(environment, "user", "set_user_info", { name: "Ada", phone_number: NUMBER });
  return environment;
}

function run(environment: Environment, env_type: string, func_name: string, args: Record<string, PyValue> = {}): PyValue {
  return environment.runFunction({ env_type, func_name, arguments: Dict.of(args) });
}

function ask(environment: Environment, requestor: "user" | "assistant", name: string, args: Record<string, PyValue> = {}): string | null {
  return environment.getResponse({ id: "", name, requestor, arguments: Dict.of(args) }).content;
}

const line = { customer_id: "C1", line_id: "L1" };

describe("a phone", () => {
  it("detects that its line was suspended at its next network search", () => {
    const environment = open();
    ask(environment, "assistant", "suspend_line", { ...line, reason: "lost" });
    expect(ask(environment, "user", "check_status_bar")).toBe("Status Bar: 📶³ Good | 5G | 📱 Data Enabled | 🔋 80%");
    expect(ask(environment, "user", "reboot_device")).toContain("📵 No Signal");
  });

  it("has no data beyond its allowance until some is refueled", () => {
    const environment = open();
    run(environment, "assistant", "set_data_usage", { ...line, data_used_gb: 5 });
    expect(ask(environment, "user", "run_speed_test")).toBe("Speed test failed: No Connection.");
    ask(environment, "assistant", "refuel_data", { ...line, gb_amount: 2 });
    expect(ask(environment, "user", "run_speed_test")).toContain("220.00 Mbps (Excellent)");
  });

  it("keeps a broken VPN profile, but does not change that of its origin", () => {
    const origin = open();
    ask(origin, "user", "connect_vpn");
    const fork = origin.fork();
    run(fork, "user", "break_vpn");
    ask(fork, "user", "disconnect_vpn");
    ask(fork, "user", "connect_vpn");
    expect(ask(fork, "user", "check_vpn_status")).toContain("PerformanceLevel.POOR");
    expect(ask(origin, "user", "check_vpn_status")).toContain("PerformanceLevel.EXCELLENT");
  });

  it("keeps invalid APN settings, and raises errors from then on", () => {
    const environment = open();
    expect(ask(environment, "user", "set_apn_settings", { apn_settings: "internet" })).toBe(
      "Error: 'str' object has no attribute 'apn_name'",
    );
    expect(ask(environment, "user", "check_apn_settings")).toBe("Error: 'str' object has no attribute 'model_copy'");
    expect(ask(environment, "user", "set_apn_settings", { apn_settings: new Dict() })).toContain("APN settings set to: internet");
  });
});

describe("a bill", () => {
  it("is requested, paid and settled across the two sides", () => {
    const environment = open();
    ask(environment, "assistant", "refuel_data", { ...line, gb_amount: 2 });
    ask(environment, "assistant", "send_payment_request", { customer_id: "C1", bill_id: "B00000001" });
    expect(ask(environment, "user", "make_payment")).toBe("Payment of 3.0 USD has been made for bill B00000001.");
    expect(ask(environment, "user", "check_payment_request")).toBe("No payment request has been made.");
    expect(run(environment, "assistant", "assert_no_overdue_bill", { overdue_bill_id: "B00000001" })).toBe(true);
  });

  it("gets the same id in two forks, which count separately", () => {
    const one = open();
    const other = one.fork();
    for (const environment of [one, other]) ask(environment, "assistant", "refuel_data", { ...line, gb_amount: 1 });
    expect(one.hashes()).toEqual(other.hashes());
  });
});

it("looks up a device with a model name", () => {
  expect(ask(open(), "assistant", "get_details_by_id", { id: "D1" })).toContain('"model": "Brick 3"');
});

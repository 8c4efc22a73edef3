import { beforeEach, describe, expect, it } from "vitest";
import { Toolkit } from "../../core/tools/toolkit.ts";
import { readJson } from "../../python/json/reader.ts";
import { writeJson } from "../../python/json/writer.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { airlineTools } from "./agent-tools.ts";
import { FlightDb } from "./model.ts";

const seats = { basic_economy: 5, economy: 2, business: 0 };
const prices = { basic_economy: 60, economy: 100, business: 300 };
const open = { status: "available", available_seats: seats, prices };
const flight = (flight_number: string, origin: string, destination: string, departs: string, arrives: string, dates: object) => ({
  flight_number,
  origin,
  destination,
  scheduled_departure_time_est: departs,
  scheduled_arrival_time_est: arrives,
  dates,
});

const data = {
  flights: {
    HAT001: flight("HAT001", "JFK", "ORD", "08:00:00", "10:00:00", { "2024-05-20": open, "2024-05-01": { status: "cancelled" } }),
    HAT002: flight("HAT002", "ORD", "SFO", "10:00:00", "12:00:00", { "2024-05-20": open }),
    HAT003: flight("HAT003", "JFK", "DEN", "22:00:00", "01:30:00+1", { "2024-05-20": open }),
    HAT004: flight("HAT004", "DEN", "SFO", "01:30:00", "03:00:00", { "2024-05-21": open }),
    HAT005: flight("HAT005", "DEN", "SFO", "09:30:00", "11:00:00", { "2024-05-21": open }),
  },
  users: {
    ann: {
      user_id: "ann",
      name: { first_name: "Ann", last_name: "Lee" },
      address: { address1: "1 Elm St", city: "Austin", country: "USA", state: "TX", zip: "73301" },
      email: "ann@example.com",
      dob: "1990-01-01",
      payment_methods: {
        card: { source: "credit_card", id: "card", brand: "visa", last_four: "1234" },
        gift: { source: "gift_card", id: "gift", amount: 120 },
        paper: { source: "certificate", id: "paper", amount: 500 },
      },
      saved_passengers: [],
      membership: "gold",
      reservations: ["AAA"],
    },
  },
  reservations: {
    AAA: {
      reservation_id: "AAA",
      user_id: "ann",
      origin: "JFK",
      destination: "ORD",
      flight_type: "one_way",
      cabin: "economy",
      flights: [{ origin: "JFK", destination: "ORD", flight_number: "HAT001", date: "2024-05-20", price: 90 }],
      passengers: [{ first_name: "Ann", last_name: "Lee", dob: "1990-01-01" }],
      payment_history: [{ payment_id: "card", amount: 90 }],
      created_at: "2024-05-01T00:00:00",
      total_baggages: 0,
      nonfree_baggages: 0,
      insurance: "no",
    },
  },
};

const shared = FlightDb.validate(readJson(JSON.stringify(data)));
const original = new Toolkit(airlineTools, shared);
const untouched = original.dbHash();
let toolkit: Toolkit;

/** Calls a tool with JSON arguments, which distinguish 1 from 1.0, and returns the result as JSON. */
function call(name: string, args: string): string {
  return writeJson(toolkit.useTool(name, readJson(args) as Dict));
}

const field = (json: string, name: string): PyValue | undefined => (readJson(json) as Dict).get(name);
const show = (json: string, name: string): string => writeJson(field(json, name) ?? null);
const methods = (): string => show(call("get_user_details", '{"user_id":"ann"}'), "payment_methods");

beforeEach(() => {
  toolkit = original.fork(new Map());
});

describe("book_reservation", () => {
  const trip = {
    user_id: '"ann"',
    origin: '"JFK"',
    destination: '"ORD"',
    flight_type: '"one_way"',
    cabin: '"economy"',
    flights: '[{"flight_number":"HAT001","date":"2024-05-20"}]',
    passengers: '[{"first_name":"Ann","last_name":"Lee","dob":"1990-01-01","seat":"1A"}]',
    payment_methods: '[{"payment_id":"paper","amount":130},{"payment_id":"gift","amount":"50"}]',
    total_baggages: "1",
    nonfree_baggages: "1",
    insurance: '"yes"',
  };
  const book = (changes: Partial<typeof trip> = {}): string => {
    const entries = Object.entries({ ...trip, ...changes }).map(([key, value]) => `"${key}":${value}`);
    return call("book_reservation", `{${entries.join(",")}}`);
  };

  it("takes the seats, the gift card's share and the whole certificate", () => {
    const booked = book();
    expect(show(booked, "reservation_id")).toBe('"HATHAT"');
    expect(show(booked, "passengers")).toBe('[{"first_name": "Ann", "last_name": "Lee", "dob": "1990-01-01"}]');
    expect(methods()).not.toContain("paper");
    expect(methods()).toContain('"amount": 70.0');
    expect(call("search_direct_flight", '{"origin":"JFK","destination":"ORD","date":"2024-05-20"}')).toContain('"economy": 1');
    expect(show(call("get_user_details", '{"user_id":"ann"}'), "reservations")).toBe('["AAA", "HATHAT"]');
  });

  it("does not change shared rows", () => {
    book();
    expect(original.dbHash()).toBe(untouched);
  });

  it.each([
    [{ flights: '[{"flight_number":"HAT009","date":"2024-05-20"}]' }, "Flight HAT009 not found"],
    [{ flights: '[{"flight_number":"HAT001","date":"2024-06-20"}]' }, "Flight HAT001 not found on date 2024-06-20"],
    [{ flights: '[{"flight_number":"HAT001","date":"2024-05-01"}]' }, "Flight HAT001 not available on date 2024-05-01"],
    [{ cabin: '"business"' }, "Not enough seats on flight HAT001"],
    [{ flights: '[{"flight_number":"HAT001"}, 3]' }, "'dict' object has no attribute 'flight_number'"],
    [{ flights: '"HAT001"' }, "'str' object has no attribute 'flight_number'"],
    [{ flights: "null", user_id: '"bob"' }, "'NoneType' object is not iterable"],
    [{ payment_methods: '[{"payment_id":"cash","amount":180}]' }, "Payment method cash not found"],
    [{ payment_methods: '[{"payment_id":"gift","amount":180}]' }, "Not enough balance in payment method gift"],
    [{ payment_methods: "[]" }, "Payment amount does not add up, total price is 180, but paid 0"],
    [{ nonfree_baggages: "1.0", payment_methods: "{}" }, "Payment amount does not add up, total price is 180.0, but paid 0"],
    [{ nonfree_baggages: "-1", payment_methods: '""' }, "Payment amount does not add up, total price is 80, but paid 0"],
    [{ nonfree_baggages: '"1"' }, "unsupported operand type(s) for +=: 'int' and 'str'"],
  ])("refuses %j and changes nothing", (changes, complaint) => {
    expect(() => book(changes)).toThrow(complaint);
    expect(toolkit.dbHash()).toBe(untouched);
  });

  it("names every field that a reservation cannot take", () => {
    const complaint = /^3 validation errors for Reservation\ncabin\n.*\n.*\npassengers\.1\n.*model_type.*\n.*\ninsurance\n/;
    expect(() => book({ cabin: '"first"', passengers: '[{"first_name":"A","last_name":"B","dob":"C"},null]', insurance: "true" })).toThrow(
      complaint,
    );
  });

  it("keeps the amounts taken when a certificate is used twice", () => {
    const twice = '[{"payment_id":"paper","amount":90},{"payment_id":"paper","amount":90}]';
    expect(() => book({ payment_methods: twice })).toThrow("'paper'");
    expect(methods()).not.toContain("paper");
    expect(() => call("get_reservation_details", '{"reservation_id":"HATHAT"}')).toThrow("Reservation HATHAT not found");
  });

  it("has three ids", () => {
    const free = { flights: "[]", passengers: "[]", payment_methods: "[]", nonfree_baggages: "0" };
    expect([1, 2, 3].map(() => field(book(free), "reservation_id"))).toEqual(["HATHAT", "HATHAU", "HATHAV"]);
    expect(() => book(free)).toThrow("Too many reservations");
  });
});

describe("cancel_reservation", () => {
  it("refunds the refunds when called again", () => {
    const cancel = () => call("cancel_reservation", '{"reservation_id":"AAA"}');
    cancel();
    const amounts = (field(cancel(), "payment_history") as Dict[]).map((payment) => payment.get("amount"));
    expect(amounts).toEqual([90, -90, -90, 90]);
  });

  it("fails before the history fills the memory", () => {
    expect(() => {
      for (let i = 0; i < 40; i++) toolkit.useTool("cancel_reservation", Dict.of({ reservation_id: "AAA" }));
    }).toThrow(/^a history of 65536 payments is too long to refund$/);
  });
});

describe("update_reservation_baggages", () => {
  const update = (nonfree: string, payment = "gift", total = "1"): string =>
    call(
      "update_reservation_baggages",
      `{"reservation_id":"AAA","total_baggages":${total},"nonfree_baggages":${nonfree},"payment_id":"${payment}"}`,
    );

  it("charges added bags and stores the counts unchanged", () => {
    const updated = update("0.5", "gift", '{"a":[1]}');
    expect(show(updated, "payment_history")).toContain('{"payment_id": "gift", "amount": 25}');
    expect(show(updated, "total_baggages")).toBe('{"a": [1]}');
    expect(show(updated, "nonfree_baggages")).toBe("0.5");
    expect(methods()).toContain('"amount": 95.0');
  });

  it("refunds nothing for fewer bags, but still requires a valid payment method", () => {
    expect(show(update("-3"), "payment_history")).toBe('[{"payment_id": "card", "amount": 90}]');
    expect(() => update("-4", "paper")).toThrow("Certificate cannot be used to update reservation");
    expect(() => update("-4", "cash")).toThrow("Payment method not found");
  });

  it("charges the gift card even when the payment is then refused", () => {
    expect(() => update("1.01")).toThrow(/^1 validation error for Payment\namount\n.*int_from_float/);
    expect(methods()).toContain('"amount": 69.5');
  });

  it("refuses counts that are not numbers", () => {
    expect(() => update("null")).toThrow("unsupported operand type(s) for -: 'NoneType' and 'int'");
  });
});

describe("update_reservation_flights", () => {
  const update = (cabin: string, flights: string, payment = "gift"): string =>
    call("update_reservation_flights", `{"reservation_id":"AAA","cabin":${cabin},"flights":${flights},"payment_id":"${payment}"}`);
  const same = '{"flight_number":"HAT001","date":"2024-05-20"}';
  const next = '{"flight_number":"HAT002","date":"2024-05-20"}';

  it("keeps the price of an unchanged flight and charges the new one", () => {
    const updated = update('"economy"', `[${same},${next}]`);
    expect((field(updated, "flights") as Dict[]).map((kept) => kept.get("price"))).toEqual([90, 100]);
    expect(show(updated, "payment_history")).toContain('{"payment_id": "gift", "amount": 100}');
    expect(methods()).toContain('"amount": 20.0');
  });

  it("refunds the difference of a cheaper cabin to a gift card", () => {
    expect(show(update('"basic_economy"', `[${same}]`), "payment_history")).toContain('{"payment_id": "gift", "amount": -30}');
    expect(methods()).toContain('"amount": 150.0');
  });

  it("accepts any cabin if there are no flights", () => {
    const updated = update('["none"]', "[]");
    expect([show(updated, "cabin"), show(updated, "flights")]).toEqual(['["none"]', "[]"]);
    expect(() => update('["none"]', `[${same}]`)).toThrow("unhashable type: 'list'");
  });

  it("refuses a cabin that the flight does not have, with the cabin's name as the error", () => {
    expect(() => update('"first"', `[${same}]`)).toThrow(/^'first'$/);
    expect(() => update("null", `[${same}]`)).toThrow(/^None$/);
    expect(toolkit.dbHash()).toBe(untouched);
  });
});

describe("update_reservation_passengers", () => {
  const update = (passengers: string): string =>
    call("update_reservation_passengers", `{"reservation_id":"AAA","passengers":${passengers}}`);

  it.each(['"😀"', "[null]", '{"a": 1}'])("stores %s unchanged, because its length is one", (passengers) => {
    expect(field(update(passengers), "passengers")).toEqual(readJson(passengers));
  });

  it("refuses another number of passengers", () => {
    expect(() => update("[]")).toThrow("Number of passengers does not match");
  });
});

describe("searches", () => {
  const numbers = (found: string): unknown => (JSON.parse(found) as { flight_number: string }[]).map((hit) => hit.flight_number);
  const legs = (found: string): unknown =>
    JSON.parse(found).map((pair: { flight_number: string; date: string }[]) => pair.map((leg) => [leg.flight_number, leg.date]));

  it("treat None as any airport", () => {
    expect(numbers(call("search_direct_flight", '{"origin":null,"destination":null,"date":"2024-05-20"}'))).toEqual([
      "HAT001",
      "HAT002",
      "HAT003",
    ]);
  });

  it("refuse a date that is a list only if a flight matches", () => {
    expect(call("search_direct_flight", '{"origin":"JFK","destination":"MIA","date":[]}')).toBe("[]");
    expect(() => call("search_direct_flight", '{"origin":"JFK","destination":"ORD","date":[]}')).toThrow("unhashable type: 'list'");
  });

  it("connect in the same minute, but not across midnight", () => {
    expect(legs(call("search_onestop_flight", '{"origin":"JFK","destination":"SFO","date":"2024-05-20"}'))).toEqual([
      [
        ["HAT001", "2024-05-20"],
        ["HAT002", "2024-05-20"],
      ],
      [
        ["HAT003", "2024-05-20"],
        ["HAT005", "2024-05-21"],
      ],
    ]);
  });
});

describe("send_certificate", () => {
  const send = (amount: string): string => JSON.parse(call("send_certificate", `{"user_id":"ann","amount":${amount}}`));

  it("prints the amount as given and has three ids per user", () => {
    expect(send("100")).toBe("Certificate certificate_3221322 added to user ann with amount 100.");
    expect(() => send('"a lot"')).toThrow(/^1 validation error for Certificate\namount\n.*float_parsing/);
    expect([send("true"), send("-1.50")].map((said) => said.slice(-14))).toEqual(["h amount True.", "h amount -1.5."]);
    expect(methods()).toContain('"certificate_3221323": {"source": "certificate", "id": "certificate_3221323", "amount": 1.0}');
    expect(() => send("null")).toThrow("Too many certificates");
  });
});

import { describe, expect, it } from "vitest";
import { repr } from "../repr.ts";
import { bind } from "../signature.ts";
import { assign, attribute } from "../values/objects.ts";
import { Dict, float, type PyValue } from "../values/values.ts";
import { dict, int, list, literal, nullable, number, text, union, withDefault } from "./field-types.ts";
import { type Instance, model } from "./model.ts";

const Card = model("Card", { source: literal("card"), id: text, last_four: text });
const Gift = model("Gift", { source: literal("gift"), id: text, amount: number });
const Person = model(
  "Person",
  {
    name: text,
    age: int,
    note: withDefault(nullable(text), null),
    tags: withDefault(list(text), () => []),
    pays: withDefault(dict(union(Card, Gift)), () => new Dict()),
  },
  { module: "tau2.shop.model", extra: "forbid" },
);

function message(run: () => unknown): string {
  try {
    run();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

describe("a model", () => {
  it("orders fields as declared, coerces and fills in defaults", () => {
    const person = Person.create({ age: "7", name: "Ann" });
    expect(repr(person)).toBe("Person(name='Ann', age=7, note=None, tags=[], pays={})");
  });

  it("creates a new list for each instance", () => {
    Person.create({ age: 1, name: "a" }).tags.push("x");
    expect(Person.create({ age: 1, name: "a" }).tags).toEqual([]);
  });

  it("may have a field called model", () => {
    const Phone = model("Phone", { model: text });
    expect(repr(Phone.create({ model: "Brick 3" }))).toBe("Phone(model='Brick 3')");
  });

  it("names every invalid field, in order, with its input", () => {
    expect(message(() => Person.create({ name: 5, tags: ["a", 1], zz: float(1) }))).toBe(
      [
        "4 validation errors for Person",
        "name",
        "  Input should be a valid string [type=string_type, input_value=5, input_type=int]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/string_type",
        "age",
        "  Field required [type=missing, input_value={'name': 5, 'tags': ['a', 1], 'zz': 1.0}, input_type=dict]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/missing",
        "tags.1",
        "  Input should be a valid string [type=string_type, input_value=1, input_type=int]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/string_type",
        "zz",
        "  Extra inputs are not permitted [type=extra_forbidden, input_value=1.0, input_type=float]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/extra_forbidden",
      ].join("\n"),
    );
  });

  it("cuts long inputs in the middle, between characters", () => {
    expect(message(() => Person.create({ name: "a", age: "é".repeat(40) }))).toContain(
      `input_value='${"é".repeat(12)}...${"é".repeat(11)}',`,
    );
  });

  it("of a union is selected by its tag; if none fits, the errors of all are listed", () => {
    const gift = Dict.of<PyValue>({ source: "gift", id: "g", amount: 3 });
    const person = Person.create({ name: "a", age: 1, pays: new Dict([["g", gift]]) });
    expect(repr(person.pays)).toBe("{'g': Gift(source='gift', id='g', amount=3.0)}");
    const wrong = new Dict([["g", Dict.of<PyValue>({ source: "cash", id: "g" })]]);
    expect(message(() => Person.create({ name: "a", age: 1, pays: wrong })).match(/^pays.*$/gm)).toEqual([
      "pays.g.Card.source",
      "pays.g.Card.last_four",
      "pays.g.Gift.source",
      "pays.g.Gift.amount",
    ]);
  });

  it("keeps an instance by reference", () => {
    const ann = Person.create({ name: "Ann", age: 1 });
    const Pair: Instance<ReturnType<typeof pair>> = pair().create({ one: ann });
    expect(Pair.one).toBe(ann);
  });

  it("unpacks mappings only", () => {
    expect(message(() => Person.unpack("x"))).toBe("tau2.shop.model.Person() argument after ** must be a mapping, not str");
  });

  it("lets any value be assigned, and raises for missing attributes", () => {
    const person = Person.create({ name: "Ann", age: 1 });
    assign(person, "age", "old");
    expect(repr(person)).toContain("age='old'");
    expect(() => attribute(person as unknown as Instance<typeof Gift>, "amount")).toThrow("'Person' object has no attribute 'amount'");
  });
});

const pair = () => model("Pair", { one: Person });

describe("arguments", () => {
  const parameters = [{ name: "a" }, { name: "b" }, { name: "c" }, { name: "d", defaultValue: null }];

  it.each<[Record<string, PyValue>, string]>([
    [{ a: 1, b: 2, x: 3 }, "T.f() got an unexpected keyword argument 'x'"],
    [{ a: 1, b: 2 }, "T.f() missing 1 required positional argument: 'c'"],
    [{ a: 1 }, "T.f() missing 2 required positional arguments: 'b' and 'c'"],
    [{}, "T.f() missing 3 required positional arguments: 'a', 'b', and 'c'"],
  ])("%o raise a TypeError", (args, text) => expect(message(() => bind("T.f", parameters, Dict.of(args)))).toBe(text));

  it("that are None count as given", () => {
    expect(bind("T.f", parameters, Dict.of<PyValue>({ a: null, b: 1, c: 2 }))).toEqual({ a: null, b: 1, c: 2, d: null });
  });
});

import { integer, type JsonSchema, type ParameterSpec, parameter, parametersSchema, text } from "../../core/tools/parameters.ts";

/** Parameters of several tools. */
export const reservationId = text("The reservation, by its six characters, for example 'ZFA04Y'.");
export const userId = text("The user's id, for example 'sara_doe_496'.");
export const origin = text("Where it departs: an airport's three letters, for example 'JFK'.");
export const destination = text("Where it arrives: an airport's three letters, for example 'LAX'.");
export const date = text("The day of departure as YYYY-MM-DD.");
export const flightNumber = text("The flight, for example 'HAT001'.");
export const paymentId = text(
  "How to pay or be refunded: the id of a payment method in the user's profile, for example 'credit_card_7815826'.",
);
export const totalBaggages = integer("How many checked bags there are, the free ones included.");
export const nonfreeBaggages = integer("How many of the checked bags are paid for.");

export const cabin: ParameterSpec = choice(["business", "economy", "basic_economy"], "The class, one for all flights and passengers.");
export const flightType: ParameterSpec = choice(["round_trip", "one_way"], "Whether the trip leads back.");
export const insurance: ParameterSpec = choice(["yes", "no"], "Whether the trip is insured.");

export const flights = records("FlightInfo", "Every flight of the trip, in order.");
export const newFlights = records("FlightInfo", "Every flight that the trip is to have, in order, also those that stay as they are.");
export const passengers = records("Passenger", "Everyone who travels.");
export const payments = records("Payment", "How the price is paid; the amounts add up to it exactly.");

/** The schemas of the list items, for a tool's `definitions`. */
export const FlightInfo = definition("FlightInfo", { flight_number: flightNumber, date });
export const Passenger = definition("Passenger", {
  first_name: text("The passenger's first name."),
  last_name: text("The passenger's last name."),
  dob: text("The day of birth as YYYY-MM-DD."),
});
export const Payment = definition("Payment", {
  payment_id: text("A payment method in the user's profile."),
  amount: integer("What it pays, in dollars."),
});

function choice(words: readonly string[], description: string): ParameterSpec {
  return parameter({ type: "string", enum: words }, description);
}

function records(name: string, description: string): ParameterSpec {
  const items = { anyOf: [{ $ref: `#/$defs/${name}` }, { additionalProperties: true, type: "object" }] };
  return parameter({ type: "array", items }, description);
}

function definition(title: string, fields: Readonly<Record<string, ParameterSpec>>): JsonSchema {
  return { ...parametersSchema(fields, null), title };
}

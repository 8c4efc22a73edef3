import { table } from "../../core/database/table.ts";
import { dict, int, list, literal, nullable, number, text, union, withDefault } from "../../python/model/field-types.ts";
import { type Instance, model } from "../../python/model/model.ts";

const module = "tau2.domains.airline.data_model";

const cabin = literal("business", "economy", "basic_economy");
const perCabin = dict(int, cabin);

const AvailableDay = model(
  "FlightDateStatusAvailable",
  { status: literal("available"), available_seats: perCabin, prices: perCabin },
  { module },
);
const LandedDay = model(
  "FlightDateStatusLanded",
  { status: literal("landed"), actual_departure_time_est: text, actual_arrival_time_est: text },
  { module },
);
const CancelledDay = model("FlightDateStatusCancelled", { status: literal("cancelled") }, { module });
const DelayedDay = model(
  "FlightDateStatusDelayed",
  { status: literal("delayed"), estimated_departure_time_est: text, estimated_arrival_time_est: text },
  { module },
);
const FlyingDay = model(
  "FlightDateStatusFlying",
  { status: literal("flying"), actual_departure_time_est: text, estimated_arrival_time_est: text },
  { module },
);
const OnTimeDay = model(
  "FlightDateStatusOnTime",
  { status: literal("on time"), estimated_departure_time_est: text, estimated_arrival_time_est: text },
  { module },
);

const Flight = model(
  "Flight",
  {
    flight_number: text,
    origin: text,
    destination: text,
    scheduled_departure_time_est: text,
    scheduled_arrival_time_est: text,
    dates: dict(union(AvailableDay, LandedDay, CancelledDay, DelayedDay, FlyingDay, OnTimeDay)),
  },
  { module },
);

/** A flight in a search result; only the search for connections sets `date`. */
export const DirectFlight = model(
  "DirectFlight",
  {
    flight_number: text,
    origin: text,
    destination: text,
    status: literal("available"),
    scheduled_departure_time_est: text,
    scheduled_arrival_time_est: text,
    date: withDefault(nullable(text), null),
    available_seats: perCabin,
    prices: perCabin,
  },
  { module },
);

export const AirportCode = model("AirportCode", { iata: text, city: text }, { module });

const CreditCard = model("CreditCard", { source: literal("credit_card"), id: text, brand: text, last_four: text }, { module });
const GiftCard = model("GiftCard", { source: literal("gift_card"), id: text, amount: number }, { module });
export const Certificate = model("Certificate", { source: literal("certificate"), id: text, amount: number }, { module });

export const Passenger = model("Passenger", { first_name: text, last_name: text, dob: text }, { module });

const Name = model("Name", { first_name: text, last_name: text }, { module });
const Address = model(
  "Address",
  { address1: text, address2: withDefault(nullable(text), null), city: text, country: text, state: text, zip: text },
  { module },
);

const User = model(
  "User",
  {
    user_id: text,
    name: Name,
    address: Address,
    email: text,
    dob: text,
    payment_methods: dict(union(CreditCard, GiftCard, Certificate)),
    saved_passengers: list(Passenger),
    membership: literal("gold", "silver", "regular"),
    reservations: list(text),
  },
  { module },
);

export const Payment = model("Payment", { payment_id: text, amount: int }, { module });

/** A flight in the arguments of a tool. */
export const FlightInfo = model("FlightInfo", { flight_number: text, date: text }, { module });

export const ReservationFlight = model(
  "ReservationFlight",
  { flight_number: text, origin: text, destination: text, date: text, price: int },
  { module },
);

export const Reservation = model(
  "Reservation",
  {
    reservation_id: text,
    user_id: text,
    origin: text,
    destination: text,
    flight_type: literal("round_trip", "one_way"),
    cabin,
    flights: list(ReservationFlight),
    passengers: list(Passenger),
    payment_history: list(Payment),
    created_at: text,
    total_baggages: int,
    nonfree_baggages: int,
    insurance: literal("yes", "no"),
    status: withDefault(nullable(literal("cancelled")), null),
  },
  { module },
);

export const FlightDb = model(
  "FlightDB",
  { flights: table(Flight), users: table(User), reservations: table(Reservation) },
  { module, extra: "forbid" },
);

export type AvailableDay = Instance<typeof AvailableDay>;
export type DirectFlight = Instance<typeof DirectFlight>;
export type Flight = Instance<typeof Flight>;
export type FlightInfo = Instance<typeof FlightInfo>;
export type Payment = Instance<typeof Payment>;
export type Reservation = Instance<typeof Reservation>;
export type ReservationFlight = Instance<typeof ReservationFlight>;
export type User = Instance<typeof User>;
export type FlightDb = Instance<typeof FlightDb>;

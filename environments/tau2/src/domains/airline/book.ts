import { typeError, valueError } from "@aenv/benchmark";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { add, multiply, subtract } from "../../python/arithmetic.ts";
import { equals } from "../../python/equality.ts";
import { str } from "../../python/repr.ts";
import { typeName } from "../../python/values/types.ts";
import { isNumber, type PyInt, type PyValue } from "../../python/values/values.ts";
import { BAG_PRICE, fareOf, unreadFlights } from "./fare.ts";
import { type FlightDb, FlightInfo, Passenger, Payment, Reservation } from "./model.ts";
import * as parameters from "./parameters.ts";
import { checkPayments, takePayments } from "./payment.ts";
import { editUser, getUser, recordsOf } from "./records.ts";

const { write } = toolsOf<Side<FlightDb>>();

const NEW_IDS = ["HATHAT", "HATHAU", "HATHAV"];
const NOW = "2024-05-15T15:00:00";
const INSURANCE_PRICE = 30;

export const bookReservation = write({
  name: "book_reservation",
  summary: "Book a trip for a user and take the payment.",
  details: "Seats and balances are checked, and the payments must add up to the price of flights, insurance and paid bags.",
  parameters: {
    user_id: parameters.userId,
    origin: parameters.origin,
    destination: parameters.destination,
    flight_type: parameters.flightType,
    cabin: parameters.cabin,
    flights: parameters.flights,
    passengers: parameters.passengers,
    payment_methods: parameters.payments,
    total_baggages: parameters.totalBaggages,
    nonfree_baggages: parameters.nonfreeBaggages,
    insurance: parameters.insurance,
  },
  definitions: { FlightInfo: parameters.FlightInfo, Passenger: parameters.Passenger, Payment: parameters.Payment },
  run(asked, { db }) {
    const flights = recordsOf(asked.flights, FlightInfo);
    const passengers = recordsOf(asked.passengers, Passenger) ?? asked.passengers;
    const payments = recordsOf(asked.payment_methods, Payment) ?? asked.payment_methods;
    const { user_id } = asked;
    const user = getUser(db, user_id);
    const reservation_id = newId(db);
    const reservation = Reservation.create({
      reservation_id,
      user_id,
      origin: asked.origin,
      destination: asked.destination,
      flight_type: asked.flight_type,
      cabin: asked.cabin,
      flights: [],
      passengers,
      payment_history: payments,
      created_at: NOW,
      total_baggages: asked.total_baggages,
      nonfree_baggages: asked.nonfree_baggages,
      insurance: asked.insurance,
    });
    if (flights === null) throw unreadFlights(asked.flights);
    const seats = reservation.passengers.length;
    for (const flight of flights) reservation.flights.push(fareOf(db, flight, reservation.cabin, seats));

    const total = priceOf(reservation, asked.nonfree_baggages);
    const paid = reservation.payment_history;
    checkPayments(user, paid);
    const sum = paid.reduce<PyValue>((all, { amount }) => add(all, amount), 0);
    if (!equals(sum, total)) {
      throw valueError(`Payment amount does not add up, total price is ${str(total)}, but paid ${str(sum)}`);
    }
    takePayments(db, user_id, paid);
    takeSeats(db, reservation);
    db.reservations.set(reservation_id, reservation);
    editUser(db, user_id).reservations.push(reservation_id);
    return reservation;
  },
});

function newId(db: FlightDb): string {
  const id = NEW_IDS.find((candidate) => !db.reservations.has(candidate));
  if (id === undefined) throw valueError("Too many reservations");
  return id;
}

/** The price uses the arguments, not the stored counts: 1.0 gives a float, "1" raises an error. */
function priceOf({ flights, passengers, insurance }: Reservation, nonfreeBaggages: PyValue): PyValue {
  const travellers = passengers.length;
  let total: PyValue = insurance === "yes" ? INSURANCE_PRICE * travellers : 0;
  for (const { price } of flights) total = add(total, multiply(price, travellers));
  if (!isNumber(nonfreeBaggages)) {
    throw typeError(`unsupported operand type(s) for +=: '${typeName(total)}' and '${typeName(nonfreeBaggages)}'`);
  }
  return add(total, multiply(BAG_PRICE, nonfreeBaggages));
}

function takeSeats(db: FlightDb, { flights, cabin, passengers }: Reservation): void {
  for (const { flight_number, date } of flights) {
    const day = db.flights.edit(flight_number)?.dates.get(date);
    if (day?.status !== "available") continue;
    const left = subtract(day.available_seats.get(cabin) ?? 0, passengers.length);
    day.available_seats.set(cabin, left as PyInt);
  }
}

import { PyError, valueError } from "@aenv/benchmark";
import { copy } from "../../core/database/copy.ts";
import { type Side, toolsOf } from "../../core/tools/tool.ts";
import { add, multiply, signed, subtract } from "../../python/arithmetic.ts";
import { equals, isOrdered } from "../../python/equality.ts";
import { lengthOf } from "../../python/sequences.ts";
import { assign } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { BAG_PRICE, fareOf, unreadFlights } from "./fare.ts";
import { type FlightDb, FlightInfo, Passenger, Payment, type Reservation, type ReservationFlight } from "./model.ts";
import * as parameters from "./parameters.ts";
import { payChange } from "./payment.ts";
import { editReservation, getReservation, getUser, recordsOf } from "./records.ts";

const { read, write } = toolsOf<Side<FlightDb>>();

/** Each cancellation doubles the history; the reference has no limit. */
const MAX_PAYMENTS = 50_000;

export const getReservationDetails = read({
  name: "get_reservation_details",
  summary: "Look up a reservation.",
  parameters: { reservation_id: parameters.reservationId },
  run: ({ reservation_id }, { db }) => getReservation(db, reservation_id),
});

export const cancelReservation = write({
  name: "cancel_reservation",
  summary: "Cancel a reservation with all its flights.",
  parameters: { reservation_id: parameters.reservationId },
  run({ reservation_id }, { db }) {
    const reservation = editReservation(db, reservation_id);
    const history = reservation.payment_history;
    if (history.length > MAX_PAYMENTS) throw new PyError("OverflowError", `a history of ${history.length} payments is too long to refund`);
    // As in the reference, refunds are only recorded: no balance and no seat count changes. A second cancellation refunds the refunds too.
    const refunds = history.map(({ payment_id, amount }) => Payment.create({ payment_id, amount: signed("-", amount) }));
    reservation.payment_history = [...history, ...refunds];
    assign(reservation, "status", "cancelled");
    return reservation;
  },
});

export const updateReservationBaggages = write({
  name: "update_reservation_baggages",
  summary: "Change how many bags a reservation has.",
  details: "Paid bags that are added are charged; for fewer of them nothing is given back.",
  parameters: {
    reservation_id: parameters.reservationId,
    total_baggages: parameters.totalBaggages,
    nonfree_baggages: parameters.nonfreeBaggages,
    payment_id: parameters.paymentId,
  },
  run({ reservation_id, total_baggages, nonfree_baggages, payment_id }, { db }) {
    const reservation = editReservation(db, reservation_id);
    getUser(db, reservation.user_id);
    const added = subtract(nonfree_baggages, reservation.nonfree_baggages);
    const total = isOrdered(added, ">", 0) ? multiply(BAG_PRICE, added) : 0;
    record(reservation, payChange(db, reservation.user_id, payment_id, total));
    assign(reservation, "total_baggages", total_baggages);
    assign(reservation, "nonfree_baggages", nonfree_baggages);
    return reservation;
  },
});

export const updateReservationFlights = write({
  name: "update_reservation_flights",
  summary: "Replace the flights of a reservation, its cabin, or both.",
  details: "The difference to the old price is charged or refunded. A flight that stays in the same cabin keeps its price.",
  parameters: {
    reservation_id: parameters.reservationId,
    cabin: parameters.cabin,
    flights: parameters.newFlights,
    payment_id: parameters.paymentId,
  },
  definitions: { FlightInfo: parameters.FlightInfo },
  run({ reservation_id, cabin, flights, payment_id }, { db }) {
    const wanted = recordsOf(flights, FlightInfo);
    const reservation = editReservation(db, reservation_id);
    getUser(db, reservation.user_id);
    if (wanted === null) throw unreadFlights(flights);
    const travellers = lengthOf(reservation.passengers);
    const isSameCabin = equals(cabin, reservation.cabin);
    const next = wanted.map(
      (flight) => (isSameCabin ? keptFlight(reservation, flight) : undefined) ?? fareOf(db, flight, cabin, travellers),
    );
    const total = multiply(subtract(sumOf(next), sumOf(reservation.flights)), travellers);
    record(reservation, payChange(db, reservation.user_id, payment_id, total));
    reservation.flights = next;
    assign(reservation, "cabin", cabin);
    return reservation;
  },
});

export const updateReservationPassengers = write({
  name: "update_reservation_passengers",
  summary: "Replace the passengers of a reservation by as many others.",
  parameters: { reservation_id: parameters.reservationId, passengers: parameters.passengers },
  definitions: { Passenger: parameters.Passenger },
  run({ reservation_id, passengers }, { db }) {
    // As in the reference, a value that is not a list of records is stored unchanged if its length is right.
    const next = recordsOf(passengers, Passenger) ?? copy(passengers);
    const reservation = editReservation(db, reservation_id);
    if (lengthOf(next) !== lengthOf(reservation.passengers)) throw valueError("Number of passengers does not match");
    assign(reservation, "passengers", next);
    return reservation;
  },
});

function keptFlight({ flights }: Reservation, { flight_number, date }: FlightInfo): ReservationFlight | undefined {
  return flights.find((flight) => flight.flight_number === flight_number && flight.date === date);
}

function sumOf(flights: readonly ReservationFlight[]): PyValue {
  return flights.reduce<PyValue>((sum, { price }) => add(sum, price), 0);
}

function record(reservation: Reservation, payment: Payment | null): void {
  if (payment !== null) reservation.payment_history.push(payment);
}

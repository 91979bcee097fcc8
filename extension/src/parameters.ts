/**
 * Parameters of a notebook or of cells, as they are filled in: by name, as texts. Pure.
 *
 * What a text means is decided by the notebook server, by the type of the parameter. The draft
 * keeps texts only, so a field may hold several values ("1, 2, 4") just as well: `given` is the one
 * place that makes a request of them, so whoever reads several values takes theirs out there, and
 * refuses with the field `parameters.NAME`, which stands below the field of that name.
 */
import type { IOfferedParameter } from './tokens';

/** What was typed, by name; what is empty keeps its default. */
export type Typed = Readonly<Record<string, string>>;

export interface IParameterField extends IOfferedParameter {
  /** What is sent has it; else it was given before, and is no parameter any more. */
  offered: boolean;
}

/** The words of a type behind a field; empty where nothing is known. */
export const TYPE_WORDS: Readonly<Record<string, string>> = {
  bool: 'true or false',
  int: 'whole number',
  float: 'number',
  str: 'text',
  list: 'list',
  dict: 'dictionary',
  any: ''
};

/** What is sent: without names that keep their default. */
export function given(typed: Typed): Record<string, string> {
  return Object.fromEntries(Object.entries(typed).filter(([, text]) => text !== ''));
}

/** The fields of the tagged cell, then those that were given and are offered no more. */
export function mainFields(offered: readonly IOfferedParameter[], typed: Typed): IParameterField[] {
  const known = new Set(offered.map(({ name }) => name));
  const gone = Object.keys(given(typed)).filter(name => !known.has(name));
  return [
    ...offered.filter(({ tagged }) => tagged).map(one => ({ ...one, offered: true })),
    ...gone.map(name => ({ ...NO_PARAMETER, name, offered: false }))
  ];
}

/** Constants that may be given another value, in the order of the cells: none moves under a hand. */
export function constantFields(offered: readonly IOfferedParameter[]): IParameterField[] {
  return offered.filter(({ tagged }) => !tagged).map(one => ({ ...one, offered: true }));
}

const NO_PARAMETER = { type: 'any', default: '', help: '', cell: '', tagged: false };

/** Values of a job as they would be typed. */
export function typedAgain(values: Readonly<Record<string, unknown>>): Typed {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
}

function text(value: unknown): string {
  if (value === null) {
    return 'None';
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What was kept, where it is what is kept. */
export function typedOf(known: unknown): Typed {
  const pairs = known !== null && typeof known === 'object' ? Object.entries(known) : [];
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  );
}

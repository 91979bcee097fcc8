/** Tags as typed in the dialog. Pure. */
import { TAGS } from './bounds';

/** Split typed tags in their order, without duplicates. */
export function splitTags(line: string): string[] {
  return [...new Set(line.split(/[\s,]+/).filter(tag => tag !== ''))];
}

/** Return the fault of tags as a sentence, or null. */
export function faultOfTags(tags: readonly string[]): string | null {
  const long = tags.find(tag => [...tag].length > TAGS.longest);
  if (long !== undefined) {
    return `Tags: “${long.slice(0, 20)}…” has ${[...long].length} characters, at most ${TAGS.longest} are allowed.`;
  }
  return tags.length > TAGS.most ? `Tags: ${tags.length} given, at most ${TAGS.most}.` : null;
}

import { components } from '../../../docs/reference/openapi-jupyter.json';
import { BOUNDS, MAX_TIME_S, outOfBounds, TAGS } from '../bounds';

interface ISchema {
  anyOf?: ISchema[];
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  maxLength?: number;
  items?: ISchema;
}

const FIELDS = components.schemas.SendRequest.properties as unknown as Record<string, ISchema>;

function bounds(field: string): ISchema {
  const schema = FIELDS[field]!;
  return schema.anyOf?.find(one => one.maximum !== undefined) ?? schema;
}

describe('bounds', () => {
  it.each(['gpus', 'workers', 'priority'] as const)('of %s match the OpenAPI document', field => {
    const { minimum, maximum } = bounds(field);
    expect([BOUNDS[field].least, BOUNDS[field].most]).toEqual([minimum, maximum]);
  });

  it('of the time limit match the OpenAPI document', () => {
    expect(MAX_TIME_S).toBe(bounds('time_limit_s').maximum);
  });

  it('of tags match the OpenAPI document', () => {
    const { maxItems, items } = FIELDS.tags!;
    expect(TAGS).toEqual({ most: maxItems, longest: items!.maxLength });
  });

  it('accept only whole numbers', () => {
    expect([1, 1024].map(n => outOfBounds('gpus', n))).toEqual([null, null]);
    for (const n of [0, 1025, 1.5, NaN]) {
      expect(outOfBounds('gpus', n)).toBe('GPUs: a whole number from 1 to 1024');
    }
  });
});

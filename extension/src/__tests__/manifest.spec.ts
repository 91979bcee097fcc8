import lock from '../../package-lock.json';
import manifest from '../../package.json';
import schema from '../../schema/plugin.json';
import * as ids from '../commandIds';

describe('the settings schema', () => {
  it('names only existing commands', () => {
    const known = new Set<string>(Object.values(ids));
    const named = [...JSON.stringify(schema).matchAll(/"command":"([^"]+)"/g)].map(one => one[1]);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(id => !known.has(id!))).toEqual([]);
  });

  it('passes only the flags of toolbar and context menu', () => {
    const given = [...JSON.stringify(schema).matchAll(/"args":(\{[^}]*\})/g)].map(one => one[1]);
    expect(new Set(given)).toEqual(new Set(['{"toolbar":true}', '{"context":true}']));
  });
});

describe('the manifest', () => {
  it('contains no package registry address', () => {
    const packages = Object.values(lock.packages) as { resolved?: string }[];
    expect(packages.filter(one => one.resolved !== undefined)).toEqual([]);
  });

  it('builds into the Python package', () => {
    expect(manifest.name).toBe('@benchpool/lab');
    expect(manifest.jupyterlab.outputDir).toBe('benchpool/labextension');
    expect(lock.version).toBe(manifest.version);
  });
});

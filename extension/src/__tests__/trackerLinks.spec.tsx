import type * as React from 'react';
import { TrackerLinks } from '../trackerLinks';
import type { IJob } from '../tokens';
import { job } from './builders';

type Part = React.ReactElement<{ children: [string, React.JSX.Element] }>;

function links(tracker_runs: IJob['tracker_runs']): React.JSX.Element[] {
  const { children } = TrackerLinks({ job: job({ tracker_runs }) }).props as { children: Part[] };
  return children.map(part => part.props.children[1]);
}

function runs(...urls: string[]): IJob['tracker_runs'] {
  return urls.map(url => ({ tracker: 'mlflow', url, text: 'MLflow on ml.example' }));
}

describe('links to runs in trackers', () => {
  it('open the page of the run in a new tab, without access to this one', () => {
    const url = 'https://ml.example/#/experiments/1/runs/2';
    expect(links(runs(url)).map(link => link as unknown)).toEqual([
      expect.objectContaining({
        type: 'a',
        props: expect.objectContaining({
          href: url,
          title: url,
          target: '_blank',
          rel: 'noopener noreferrer nofollow',
          children: 'MLflow on ml.example'
        }) as unknown
      })
    ]);
  });

  it('exist for web pages only', () => {
    const wrong = ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '//ml.example'];
    expect(links(runs(...wrong))).toEqual([]);
    expect(links(runs(...wrong, 'http://ml.example/'))).toHaveLength(1);
  });

  it('are absent without a run, also from an older pool', () => {
    expect(links([])).toEqual([]);
    expect(links(undefined as unknown as IJob['tracker_runs'])).toEqual([]);
  });
});

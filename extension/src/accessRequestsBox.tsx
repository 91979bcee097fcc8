/**
 * Project membership in the panel: open requests with their decisions, and a button to request
 * access.
 */
import { InputDialog, showErrorMessage } from '@jupyterlab/apputils';
import * as React from 'react';
import type { AccessAction } from './api';
import { useChanged } from './hooks';
import type { JobsModel } from './model';
import { accessCommand, IAccess, AccessRequests, accessRequestText } from './accessRequests';

interface IRequestsProps {
  accessRequests: AccessRequests;
  model: JobsModel;
}

export function AccessRequestsBox({ accessRequests, model }: IRequestsProps): React.JSX.Element {
  useChanged(accessRequests);
  return (
    <div className="bp-AccessRequests" data-testid="benchpool-access-requests">
      {accessRequests.all.map(request => {
        const whom = { project: request.project, user: request.user };
        return (
          <div key={`${request.project}/${request.user}`} className="bp-Note" role="status">
            {accessRequestText(request)}
            {request.decides && (
              <span className="bp-Failure">
                <button
                  type="button"
                  className="bp-Link"
                  title={accessCommand('add_member', whom)}
                  onClick={() => void done(accessRequests, 'add_member', whom)}
                >
                  {`Add ${request.user}`}
                </button>
                <button
                  type="button"
                  className="bp-Link"
                  title={accessCommand('decline_access', { ...whom, reason: '…' })}
                  onClick={() => void decline(accessRequests, whom)}
                >
                  Decline…
                </button>
              </span>
            )}
          </div>
        );
      })}
      {model.loaded && (
        <button type="button" className="bp-Link" onClick={() => void ask(accessRequests, model)}>
          Request access to a project…
        </button>
      )}
    </div>
  );
}

/** Ask the user for a project and a reason. Both dialogs show the terminal command. */
async function ask(accessRequests: AccessRequests, model: JobsModel): Promise<void> {
  const mine = new Set(model.quota?.projects.map(each => each.name));
  const others = (model.status?.projects ?? []).map(each => each.name);
  const project = await InputDialog.getItem({
    title: 'Request access to a project',
    label: `In a terminal: ${accessCommand('ask_access', { project: '…', reason: '…' })}`,
    items: others.filter(name => !mine.has(name)),
    editable: true,
    okLabel: 'Next'
  });
  if (!project.value) {
    return;
  }
  const reason = await InputDialog.getText({
    title: `Request access to ${project.value}`,
    label: 'Reason, shown to its leads and to administrators',
    okLabel: 'Request'
  });
  if (reason.button.accept) {
    await done(accessRequests, 'ask_access', {
      project: project.value,
      reason: reason.value ?? ''
    });
  }
}

async function decline(accessRequests: AccessRequests, whom: IAccess): Promise<void> {
  const reason = await InputDialog.getText({
    title: `Decline ${whom.user}`,
    label: `Reason, shown to ${whom.user}`,
    okLabel: 'Decline'
  });
  if (reason.button.accept) {
    const fields = reason.value ? { reason: reason.value } : {};
    await done(accessRequests, 'decline_access', { ...whom, ...fields });
  }
}

async function done(
  accessRequests: AccessRequests,
  action: AccessAction,
  given: IAccess
): Promise<void> {
  try {
    await accessRequests.act(action, given);
  } catch (error) {
    await showErrorMessage('Access to projects', (error as Error).message);
  }
}

/** Button below an error that requests access to its project without leaving the dialog. */
export function AskForProject(props: {
  accessRequests: AccessRequests;
  project: string;
}): React.JSX.Element {
  const { accessRequests, project } = props;
  const [answer, setAnswer] = React.useState('');
  const press = async () => {
    try {
      await accessRequests.act('ask_access', { project });
      setAnswer(
        `You requested access to project ${project}. Its leads or an administrator decide.`
      );
    } catch (error) {
      setAnswer((error as Error).message);
    }
  };
  return answer ? (
    <p className="bp-Note" role="status">
      {answer}
    </p>
  ) : (
    <button
      type="button"
      className="bp-Link"
      data-testid="benchpool-ask-access"
      title={accessCommand('ask_access', { project })}
      onClick={() => void press()}
    >
      {`Request access to ${project}`}
    </button>
  );
}

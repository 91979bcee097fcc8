"""Functions of users on jobs: upload, preview, submit, pause, resume, cancel, change.

Entry points: ``admission.Admission``, ``commands.Commands``, ``previews.Previews``,
``uploads.UploadedContents``.
"""

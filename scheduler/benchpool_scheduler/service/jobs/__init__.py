"""What users do with jobs: upload, preview, submit, pause, resume, cancel, change.

Doors: ``admission.Admission``, ``commands.Commands``, ``previews.Previews``,
``uploads.UploadedContents``.
"""

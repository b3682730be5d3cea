//! Administrators and their keys.

use http::{Method, StatusCode};
use sindri_model::AdminId;
use sindri_model::wire::{Admin, AdminWithPak, NewAdmin, RotateAdminPakResponse, RotatePakRequest};

use crate::client::{Call, Client};
use crate::error::ClientError;

impl Client {
    /// Creates an administrator. Its key is in the response and cannot be read again.
    pub async fn create_admin(&self, request: &NewAdmin) -> Result<AdminWithPak, ClientError> {
        let operation = format!("create administrator {}", request.name);
        let call = Call::new(Method::POST, "/admins".to_owned(), operation).with_json(request);
        self.fetch_json(call, StatusCode::CREATED).await
    }

    /// Lists all administrators.
    pub async fn list_admins(&self) -> Result<Vec<Admin>, ClientError> {
        self.fetch_list("/admins", "list the administrators").await
    }

    /// Replaces the key of an administrator. The new key is in the response and cannot be read again.
    pub async fn rotate_admin_key(
        &self,
        admin: AdminId,
        request: &RotatePakRequest,
    ) -> Result<AdminWithPak, ClientError> {
        let operation = format!("replace the key of administrator {admin}");
        let call = Call::new(Method::POST, format!("/admins/{admin}/rotate-pak"), operation).with_json(request);
        self.fetch_json(call, StatusCode::OK).await
    }

    /// Replaces the key of this client, which must be that of an administrator.
    pub async fn rotate_own_admin_key(&self, request: &RotatePakRequest) -> Result<String, ClientError> {
        let operation = "replace the key of the administrator".to_owned();
        let call = Call::new(Method::POST, "/admin/rotate-pak".to_owned(), operation).with_json(request);
        let response: RotateAdminPakResponse = self.fetch_json(call, StatusCode::OK).await?;
        Ok(response.pak)
    }

    /// Deletes an administrator: its key becomes invalid.
    pub async fn delete_admin(&self, admin: AdminId) -> Result<(), ClientError> {
        let operation = format!("delete administrator {admin}");
        self.send_expecting_no_content(Call::new(Method::DELETE, format!("/admins/{admin}"), operation)).await
    }
}
